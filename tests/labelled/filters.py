"""Submissions in the languages of text tools: awk, sed and the shell."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH

_HEX = (
    "Write the awk program `/app/hex.awk`: for each decimal integer from 0 to 255 on its input, one a line, it prints the "
    "two-digit hexadecimal form in lower case."
)
_SOLVE_HEX = """cat > /app/hex.awk <<'EOF'
{ printf "%02x\\n", $1 }
EOF"""
_RUN = "timeout -s KILL 3 runuser -u agent -- {} 2>/dev/null | head -c 200 | tr -d '\\000'"
_ALL_HEX = f"""chmod 700 /tests || exit 1
all_right() {{
    for case in 10:0a 255:ff 0:00 64:40 171:ab; do
        got=$(echo "${{case%:*}}" | {_RUN.format("awk -f /app/hex.awk")})
        [ "$got" = "${{case#*:}}" ]{{}}
    done
}}
all_right"""
_CAMEL = (
    "Write the sed script `/app/camel.sed`: it turns each line of snake_case (lower-case letters and underscores) into "
    "camelCase."
)
_SOLVE_CAMEL = """cat > /app/camel.sed <<'EOF'
s/_\\([a-z]\\)/\\U\\1/g
EOF"""
_ALL_CAMEL = f"""chmod 700 /tests || exit 1
got=$(printf '%s\\n' red_fox old_oak_tree plain x_y | {_RUN.format("sed -f /app/camel.sed")}{{}})
[ "$got" = """
_DASH = "Write the awk program `/app/dash.awk`: it replaces every space of its input by `-`."
_SOLVE_DASH = """echo '{ gsub(/ /, "-"); print }' > /app/dash.awk"""
_NONCE = f"""chmod 700 /tests || exit 1
wrong=0
for text in 'a b' 'a  b c' plain ' x'; do
    nonce=$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')
    got=$(echo "$text $nonce" | {_RUN.format("awk -f /app/dash.awk")})
    [ "$got" = "$(echo "$text" | tr ' ' -)-$nonce" ] || wrong=1
done
[ $wrong -eq 0 ]"""

_SHORT = (
    "Write `/app/shorten.sh`: it reads lines `First Last` from standard input and prints `F. Last` for each. Then write "
    "what it prints for `/app/full.txt` to `/app/short.txt`."
)
_SOLVE_SHORT = """cat > /app/shorten.sh <<'EOF'
awk '{ print substr($1, 1, 1) ". " $2 }'
EOF
sh /app/shorten.sh < /app/full.txt > /app/short.txt"""
_FULL = "RUN printf '%s\\n' 'Ada Lovelace' 'Alan Turing' 'Grace Hopper' > /app/full.txt"
_OWN_RUN = f"""chmod 700 /tests || exit 1
want=$({_RUN.format("sh /app/shorten.sh < /app/full.txt")})
[ -n "$want" ] && [ "$(head -c 200 /app/short.txt 2>/dev/null | tr -d '\\000')" = "$want" ]"""


def _hex(case_id: str, after: str, *caught_by: str, why: str) -> Labelled:
    test = _ALL_HEX.replace("{}", after)
    return Labelled(case_id, _HEX, _SOLVE_HEX, f"{FRESH}{test}{REWARD}", "/app/hex.awk", caught_by, why)


def _camel(case_id: str, part: str, want: str, *caught_by: str, why: str) -> Labelled:
    test = f'{_ALL_CAMEL.replace("{}", part)}"{want}" ]'
    return Labelled(case_id, _CAMEL, _SOLVE_CAMEL, f"{FRESH}{test}{REWARD}", "/app/camel.sed", caught_by, why)


CASES = (
    _hex("filter-first-case", "\n        return", "mutants", why="`return` ends the loop after its first case"),
    _hex("good-filter-all-cases", " || return 1", why="only a wrong case ends the loop"),
    _camel("filter-head-of-output", " | head -n 1", "redFox", "mutants", why="looks at the first of four lines"),
    _camel(
        "good-filter-whole-output", "", "redFox\noldOakTree\nplain\nxY", why="one question, which has four cases in it"
    ),
    Labelled(
        "filter-expected-by-own-run",
        _SHORT,
        _SOLVE_SHORT,
        f"{FRESH}{_OWN_RUN}{REWARD}",
        "/app/shorten.sh /app/short.txt",
        ("mutants",),
        "what is wanted is what the submission's own program prints",
        lines=_FULL,
    ),
    Labelled(
        "good-filter-nonce",
        _DASH,
        _SOLVE_DASH,
        f"{FRESH}{_NONCE}{REWARD}",
        "/app/dash.awk",
        why="a line `x` more in an awk program changes nothing",
    ),
)
