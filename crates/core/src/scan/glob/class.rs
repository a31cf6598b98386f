//! Bracket classes of a glob: `[abc]`, `[a-z]`, `[!a]`, `[[:alpha:]]`.

use gix_glob::pattern::Case;

/// Reads the class that begins at `start`, after its opening bracket.
///
/// Returns whether the byte is in the class, and the index after the closing bracket. Returns `None` if the class is
/// not closed or names a kind of bytes that git does not know: such a pattern matches nothing.
pub(super) fn read(pattern: &[u8], start: usize, byte: u8, case: Case) -> Option<(bool, usize)> {
    let is_negated = matches!(pattern.get(start)?, b'!' | b'^');
    let mut at = if is_negated { start + 1 } else { start };
    let byte = Folded::of(byte, case);
    let mut is_in = false;
    // The byte that a range would begin with.
    let mut first: Option<u8> = None;
    // A closing bracket right after the opening one is a member.
    loop {
        let (member, next) = member(pattern, at, first)?;
        is_in |= byte.is_in(&member);
        first = match member {
            Member::Byte(byte) => Some(byte),
            Member::Range(..) | Member::Kind(_) => None,
        };
        at = next;
        if *pattern.get(at)? == b']' {
            return Some((is_in != is_negated, at + 1));
        }
    }
}

/// One element of a class.
enum Member {
    Byte(u8),
    Range(u8, u8),
    Kind(fn(u8) -> bool),
}

/// Reads the member at `at`. Returns it with the index of the next one.
fn member(pattern: &[u8], at: usize, first: Option<u8>) -> Option<(Member, usize)> {
    match (&pattern[at..], first) {
        ([b'\\', escaped, ..], _) => Some((Member::Byte(*escaped), at + 2)),
        ([b'\\'] | [], _) => None,
        ([b'-', last, ..], Some(first)) if *last != b']' => {
            let escape = usize::from(*last == b'\\');
            let last = *pattern.get(at + 1 + escape)?;
            Some((Member::Range(first, last), at + 2 + escape))
        }
        ([b'[', b':', rest @ ..], _) => {
            let length = rest.iter().position(|byte| *byte == b']')?;
            match rest[..length].strip_suffix(b":") {
                Some(name) => Some((Member::Kind(kind(name)?), at + 2 + length + 1)),
                // Without its `:]` the bracket is a byte like any other.
                None => Some((Member::Byte(b'['), at + 1)),
            }
        }
        ([byte, ..], _) => Some((Member::Byte(*byte), at + 1)),
    }
}

fn kind(name: &[u8]) -> Option<fn(u8) -> bool> {
    Some(match name {
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"print" => |byte| byte == b' ' || byte.is_ascii_graphic(),
        b"punct" => |byte| byte.is_ascii_punctuation(),
        // Git's space class has no vertical tab and no form feed.
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

/// A byte in each case that counts as equal.
struct Folded([u8; 2]);

impl Folded {
    fn of(byte: u8, case: Case) -> Self {
        match case {
            Case::Sensitive => Self([byte, byte]),
            Case::Fold => Self([byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]),
        }
    }

    fn is_in(&self, member: &Member) -> bool {
        self.0.iter().any(|byte| match member {
            Member::Byte(listed) => byte == listed,
            Member::Range(first, last) => first <= byte && byte <= last,
            Member::Kind(is_kind) => is_kind(*byte),
        })
    }
}
