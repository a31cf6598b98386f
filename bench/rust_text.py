"""Finds functions, types, comments and imports in Rust source. Enough for counting; it is not a parser."""

import re

_SKIPPED = re.compile(
    r"""//[^\n]*
    |b?r(?P<hashes>\#*)".*?"(?P=hashes)
    |b?"(?:\\.|[^"\\])*"
    |b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'
    """,
    re.VERBOSE | re.DOTALL,
)


def without_comments_and_strings(text):
    """Returns the text with comments and literals replaced by spaces. Lines keep their numbers."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group())
    return _SKIPPED.sub(blank, _without_block_comments(text))


def _without_block_comments(text):
    return re.sub(r"(?m)^\s*/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.DOTALL)


def without_tests(code):
    """Removes modules that are compiled for tests only."""
    while found := re.search(r"#\[cfg\(test\)\]\s*(?:pub\s+)?mod\s+\w+\s*\{", code):
        code = code[: found.start()] + code[_end_of_block(code, found.end() - 1) :]
    return code


def _end_of_block(code, start):
    """Returns the position after the brace that closes the one at `start`."""
    depth = 0
    for position in range(start, len(code)):
        if code[position] == "{":
            depth += 1
        elif code[position] == "}":
            depth -= 1
            if depth == 0:
                return position + 1
    return len(code)


def function_lengths(code):
    """Returns the number of lines of each function with a body, from `fn` to its closing brace."""
    lengths = []
    for found in re.finditer(r"\bfn\s+\w+", code):
        body = _start_of_body(code, found.end())
        if body is not None:
            lengths.append(code.count("\n", found.start(), _end_of_block(code, body)) + 1)
    return lengths


def _start_of_body(code, start):
    """Returns the position of the opening brace of a function. Returns None if the function has no body."""
    depth = 0
    for position in range(start, len(code)):
        character = code[position]
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth == 0 and character == ";":
            return None
        elif depth == 0 and character == "{":
            return position
    return None


def type_names(code):
    """Returns the names of the types that are defined outside of functions and inline modules."""
    names = []
    depth = 0
    for found in re.finditer(r"[{}]|\b(?:struct|enum|union|trait|type)\s+(\w+)", code):
        if found.group() == "{":
            depth += 1
        elif found.group() == "}":
            depth -= 1
        elif depth == 0:
            names.append(found.group(1))
    return names


def comment_openings(text):
    """Returns the first line of each block of comments, without its marker."""
    openings = []
    previous = None
    for line in text.splitlines():
        found = re.match(r"\s*(//[/!]?)(?!/)(.*)", line)
        marker = found.group(1) if found else None
        if marker and marker != previous:
            openings.append(found.group(2).strip())
        previous = marker
    return openings


def imported_paths(code, module):
    """Returns the paths that start at the crate, as lists of names. `module` is the path of the file's own module."""
    paths = []
    for found in re.finditer(r"\buse\s+([^;]+);", code):
        paths += _use_tree(found.group(1))
    for found in re.finditer(r"\b(?:crate|super|self)(?:\s*::\s*\w+)+", code):
        paths.append(re.split(r"\s*::\s*", found.group()))
    resolved = (_from_crate(path, module) for path in paths)
    return [path for path in resolved if path]


def _use_tree(tree):
    """Returns the paths of a use tree such as `crate::{a::B, c}`."""
    tree = tree.strip()
    start = tree.find("{")
    if start < 0:
        return [re.split(r"\s*::\s*", re.sub(r"\s+as\s+\w+$", "", tree))]
    prefix = [name for name in re.split(r"\s*::\s*", tree[:start]) if name]
    return [prefix + path for part in _parts(tree[start + 1 : tree.rindex("}")]) for path in _use_tree(part)]


def _parts(text):
    """Splits a text at the commas outside of braces."""
    parts = [""]
    depth = 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def _from_crate(path, module):
    """Returns a path without `crate`, `self` and `super`. Returns None for a path into another crate."""
    if path[0] == "crate":
        return path[1:]
    if path[0] not in ("self", "super"):
        return None
    module = list(module)
    while path and path[0] in ("self", "super"):
        if path[0] == "super" and module:
            module.pop()
        path = path[1:]
    return module + path
