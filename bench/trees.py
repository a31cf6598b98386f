"""Creates trees to measure: the same bytes for the same size, with file sizes, depths and compressibility of source trees."""

import os
import random
import shutil
from pathlib import Path

# Files and megabytes of a small project, a large one, and a monorepo with its dependencies.
SIZES = {"S": (2_000, 25), "M": (31_000, 260), "L": (130_000, 960)}

WORDS = [
    "".join(chance.choice("etaoinshrdlucmfwypvbgk_") for _ in range(chance.randint(2, 11)))
    for chance in [random.Random(5)]
    for _ in range(6000)
]
INDENTS = ["", "    ", "        ", "            "]
ENDS = [";", " {", "}", ",", ");", ""]


def make(top, files, megabytes):
    """Fills a directory with text of unevenly drawn words, and with some files that do not compress."""
    chance = random.Random(files)
    text = source_text(chance, 4 << 20)
    noise = chance.randbytes(4 << 20)
    mean = megabytes * 1e6 / files
    for directory, names in directories(chance, files):
        path = top / directory
        path.mkdir(parents=True, exist_ok=True)
        for name in names:
            length = min(int(chance.lognormvariate(0, 1.3) * mean * 0.43), 4_000_000)
            is_noise = name.endswith((".png", ".woff"))
            stock = noise if is_noise else text
            start = chance.randrange(len(stock) - length)
            # A random number makes any two files differ.
            head = b"" if is_noise else f"// {chance.getrandbits(64):x}\n".encode()
            (path / name).write_bytes(head + stock[start:start + length])


def directories(chance, files):
    """Yields directories with the names in them: some have many, most have few; new ones are nested in earlier ones."""
    known = ["."]
    left = files
    while left:
        parent = known[min(int(chance.expovariate(3 / len(known))), len(known) - 1)] if chance.random() < 0.6 else known[-1]
        if parent.count("/") > 9:
            parent = "."
        directory = f"{parent}/{chance.choice(WORDS)}-{len(known)}"
        known.append(directory)
        count = min(left, max(1, int(chance.lognormvariate(1.5, 0.9))))
        endings = [".rs", ".go", ".ts", ".md", ".json", ".py"] * 6 + [".png", ".woff"]
        yield directory, [f"{chance.choice(WORDS)}{number}{chance.choice(endings)}" for number in range(count)]
        left -= count


def source_text(chance, length):
    """Returns lines that look and compress like code."""
    lines, size = [], 0
    while size < length:
        words = [WORDS[int(chance.paretovariate(0.7)) % len(WORDS)] for _ in range(chance.randint(1, 9))]
        line = chance.choice(INDENTS) + " ".join(words) + chance.choice(ENDS)
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines).encode()


def files_of(top):
    """Returns every file, in an order that is independent of its location."""
    found = [Path(base) / name for base, directories, names in os.walk(top) if ".git" not in Path(base).parts for name in names]
    found.sort()
    random.Random(7).shuffle(found)
    return found


def copy(source, target):
    """Copies a tree without its git repositories, so that the original stays unchanged."""
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))


def size_of(directory):
    """Returns the disk space in megabytes."""
    total = 0
    for base, _, names in os.walk(directory):
        total += sum(os.lstat(os.path.join(base, name)).st_blocks * 512 for name in names)
    return total / 1e6
