"""Ten small functions and their bugs, for fix-function: the right source, and one replacement that breaks it."""

from __future__ import annotations

RIGHT = '''
def clamp(value, low, high):
    """The value, but at least low and at most high."""
    return max(low, min(value, high))


def median(values):
    """The middle of the sorted values; of an even number of them the mean of the middle two."""
    values = sorted(values)
    half = len(values) // 2
    if len(values) % 2 == 0:
        return (values[half - 1] + values[half]) / 2
    return values[half]


def chunks(items, size):
    """The items in lists of the given size, in order; the last may be shorter."""
    return [items[i : i + size] for i in range(0, len(items), size)]


def initials(name):
    """The first letter of each word, in capitals, each followed by a dot; words are split at blanks."""
    return "".join(word[0].upper() + "." for word in name.split())


def parse_price(text):
    """Cents of a price such as 1,234.50 or 7; a dot is followed by two digits, commas are ignored."""
    whole, _, cents = text.replace(",", "").partition(".")
    return int(whole) * 100 + int(cents or 0)


def running_total(numbers):
    """For each position the sum of the numbers up to and with it."""
    total, result = 0, []
    for number in numbers:
        total += number
        result.append(total)
    return result


def runs(text):
    """Runs of equal characters as a list of [character, length]."""
    result = []
    for character in text:
        if result and result[-1][0] == character:
            result[-1][1] += 1
        else:
            result.append([character, 1])
    return result


def is_leap(year):
    """Whether a year of the Gregorian calendar has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def merge(spans):
    """Sorted spans [start, end] that cover what the given ones cover; those that touch or overlap become one."""
    result = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def balanced(text):
    """Whether every ( [ { is closed by its own ) ] } in the right order; other characters do not count."""
    partner, pending = {")": "(", "]": "[", "}": "{"}, []
    for character in text:
        if character in "([{":
            pending.append(character)
        elif character in partner and (not pending or pending.pop() != partner[character]):
            return False
    return not pending
'''

BUGS: dict[str, tuple[str, str]] = {
    "balanced": ("(not pending or pending.pop()", "(pending and pending.pop()"),
    "chunks": ("len(items), size)", "len(items) - size, size)"),
    "clamp": ("max(low, min(value, high))", "min(low, max(value, high))"),
    "initials": ("name.split()", 'name.split(" ")'),
    "is_leap": ("(year % 100 != 0 or year % 400 == 0)", "year % 100 != 0"),
    "median": ("len(values) % 2 == 0", "len(values) == 2"),
    "merge": ("start <= result[-1][1]", "start < result[-1][1]"),
    "parse_price": ('text.replace(",", "")', "text"),
    "running_total": (
        "        total += number\n        result.append(total)\n",
        "        result.append(total)\n        total += number\n",
    ),
    "runs": ("result.append([character, 1])", "result.append([character, 0])"),
}


def right_source(name: str) -> str:
    """A function's module as it should be."""
    start = RIGHT.index(f"def {name}(")
    return RIGHT[start:].partition("\n\n\n")[0].rstrip() + "\n"


def buggy_source(name: str) -> str:
    """A function's module as it lies in the box."""
    before, after = BUGS[name]
    return right_source(name).replace(before, after)
