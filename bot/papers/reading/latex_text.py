"""LaTeX inside a paragraph or a cell → plain text: commands out, formulas as text, citations as
[key].
"""

import re
from collections.abc import Callable, Mapping

from bot.papers.reading.latex_source import argument, braced, optional

_DEEPEST, _LONGEST = 40, 100_000
_SYMBOLS = {
    "pm": "±", "times": "×", "cdot": "·", "approx": "≈", "sim": "~", "leq": "≤", "le": "≤",
    "geq": "≥", "ge": "≥", "in": "∈", "to": "→", "rightarrow": "→", "ldots": "...", "dots": "...",
    "cdots": "...", "infty": "∞", "ell": "l", "uparrow": "↑", "downarrow": "↓", "checkmark": "✓",
    "textuparrow": "↑", "textdownarrow": "↓", "textpm": "±", "textpercent": "%", "quad": " ",
    "qquad": " ", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε",
    "varepsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ", "mu": "μ", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "omega": "ω", "Delta": "Δ", "Sigma": "Σ",
    "textbackslash": "\\", "textasciitilde": "~", "par": "\n\n", "newline": " ", "item": "\n\n",
    "S": "§", "ss": "ß", "LaTeX": "LaTeX", "TeX": "TeX", "degree": "°", "textdegree": "°",
    "ast": "*", "dagger": "†", "ddagger": "‡", "bullet": "•", "and": " ", "log": "log",
    "exp": "exp", "max": "max", "min": "min", "sin": "sin", "cos": "cos", "tan": "tan",
    "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "ln": "ln", "arg": "arg", "argmax": "argmax",
    "argmin": "argmin", "softmax": "softmax", "sup": "sup", "inf": "inf", "lim": "lim",
    "det": "det", "sum": "Σ", "prod": "Π", "nabla": "∇", "partial": "∂",
}  # fmt: skip
_DROPPED = {
    "label": 1, "vspace": 1, "hspace": 1, "includegraphics": 1, "setlength": 2, "color": 1,
    "bibliographystyle": 1, "bibliography": 1, "usepackage": 1, "thispagestyle": 1, "cmidrule": 1,
    "cline": 1, "rowcolor": 1, "cellcolor": 1, "columncolor": 1, "addlinespace": 0, "phantom": 1,
    "hphantom": 1, "vphantom": 1, "setcounter": 2, "addtocounter": 2, "fontsize": 2,
    "pagestyle": 1, "hypersetup": 1, "captionsetup": 1, "definecolor": 3, "newtheorem": 2,
    "thanks": 1, "affiliation": 1, "email": 1, "raisebox": 1, "rule": 2, "arraystretch": 0,
    "index": 1, "todo": 1, "specialrule": 3, "setstretch": 1, "newcolumntype": 2,
}  # fmt: skip
"""Commands that print nothing, with the number of their arguments."""
_CITES = re.compile(r"(?:no)?[cC]ite\w*|textcite|parencite|autocite|footcite")
_REFS = {"ref", "eqref", "autoref", "cref", "Cref", "pageref", "nameref", "vref"}
_SECOND = {"href": 2, "textcolor": 2, "scalebox": 2, "resizebox": 3, "parbox": 2, "colorbox": 2}
"""Commands whose argument of this number is the text."""
_TOKEN = re.compile(
    r"\\(?:([A-Za-z]+)\*?|(.))|\$\$?|[{}~&]|---?|``|''|\\$", re.DOTALL
)  # fmt: skip
_POWER = re.compile(
    r"(?<![\w.])(?:(\d+(?:\.\d+)?)\s*[×·]\s*+)?10\s*+\^\s*+\{?\s*+([-−]?\s*+\d{1,3})(?:\s*+\})?"
)
_EXPONENT = re.compile(r"(?<!\d)\^")
"""Of 1024^2 the sign stays: without it, it would be another number."""
_ACCENTS = dict(zip("`'^\"~=.", "\u0300\u0301\u0302\u0308\u0303\u0304\u0307", strict=True))
_LETTER_ACCENTS = {"c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "k": "\u0328"}


def powers(text: str) -> str:
    """Text with powers of ten as programs write them: 3 × 10^{-4} is 3e-4."""

    def as_number(match: re.Match[str]) -> str:
        return f"{match[1] or 1}e{match[2].replace('−', '-').replace(' ', '')}"

    return _POWER.sub(as_number, text)


def plain(text: str, numbers: Mapping[str, str] | None = None) -> str:
    """LaTeX as plain text. `numbers` say what a reference to a label prints."""
    words = powers(_Text(numbers or {}).convert(text[:_LONGEST], 0))
    return _EXPONENT.sub("", words).replace("{", "").replace("}", "").replace("\u00a0", " ")


class _Text:
    def __init__(self, numbers: Mapping[str, str]) -> None:
        self.numbers = numbers
        self.commands: dict[str, Callable[[str, int, int], tuple[str, int]]] = {
            "footnote": self._aside,
            "url": self._verbatim,
            "path": self._verbatim,
            "multicolumn": self._third,
            "multirow": self._third,
            "frac": self._fraction,
            "num": self._first,
            "SI": self._first,
        }

    def convert(self, text: str, depth: int) -> str:
        out, at = list[str](), 0
        if depth > _DEEPEST:
            return ""
        while match := _TOKEN.search(text, at):
            out.append(text[at : match.start()])
            piece, at = self._token(text, match, depth)
            out.append(piece)
        out.append(text[at:])
        return "".join(out)

    def _token(self, text: str, match: re.Match[str], depth: int) -> tuple[str, int]:
        mark, at = match[0], match.end()
        if match[1] is not None:
            return self._command(match[1], text, at, depth)
        if match[2] is not None:
            return self._character(match[2], text, at, depth)
        if mark == "{":
            inside, end = braced(text, match.start())
            before = text[max(0, match.start() - 1) : match.start()]
            inner = self.convert(inside, depth + 1)
            return (f"{{{inner}}}" if before == "^" else inner), end
        plain_marks = {"~": " ", "--": "–", "---": "—", "``": '"', "''": '"', "&": " "}
        return plain_marks.get(mark, ""), at

    def _character(self, char: str, text: str, at: int, depth: int) -> tuple[str, int]:
        if char in _ACCENTS:
            letter, at = argument(text, at)
            return self.convert(letter, depth + 1) + _ACCENTS[char], at
        if char == "\\":
            _, at = optional(text, at)
            return " ", at
        return (" " if char in ",;:! /-" and char != "-" else "" if char in "()[]-/" else char), at

    def _command(self, name: str, text: str, at: int, depth: int) -> tuple[str, int]:
        if name in self.commands:
            return self.commands[name](text, at, depth)
        if _CITES.fullmatch(name):
            return self._citation(text, at)
        if name in _REFS:
            label, at = argument(text, at)
            return ", ".join(self.numbers.get(one.strip(), one) for one in label.split(",")), at
        if name in _SYMBOLS:
            return _SYMBOLS[name], at
        if name in _DROPPED or name in {"begin", "end"}:
            return self._dropped(_DROPPED.get(name, 1), text, at)
        if name in _LETTER_ACCENTS and text[at : at + 1] in {"{", " "}:
            letter, at = argument(text, at)
            return self.convert(letter, depth + 1) + _LETTER_ACCENTS[name], at
        if name in _SECOND:
            for _ in range(_SECOND[name] - 1):
                _, at = argument(text, at)
            return "", at
        # Of any other command the arguments in braces are text, and follow as such.
        _, at = optional(text, at)
        return ("" if text[at : at + 1] in {"{", ""} else " "), at

    def _dropped(self, count: int, text: str, at: int) -> tuple[str, int]:
        _, at = optional(text, at)
        if text[at : at + 1] == "(":  # \cmidrule(lr){2-3}
            at = text.find(")", at) + 1 or at + 1
        for _ in range(count):
            _, at = argument(text, at)
        return "", at

    def _citation(self, text: str, at: int) -> tuple[str, int]:
        for _ in range(2):
            _, at = optional(text, at)
        keys, at = argument(text, at)
        return f"[{', '.join(key.strip() for key in keys.split(','))}]", at

    def _aside(self, text: str, at: int, depth: int) -> tuple[str, int]:
        _, at = optional(text, at)
        inside, at = argument(text, at)
        return f" ({self.convert(inside, depth + 1).strip().rstrip('.')})", at

    def _verbatim(self, text: str, at: int, _depth: int) -> tuple[str, int]:
        inside, at = argument(text, at)
        return inside.replace("\\_", "_").replace("\\%", "%").replace("\\#", "#"), at

    def _first(self, text: str, at: int, depth: int) -> tuple[str, int]:
        _, at = optional(text, at)
        inside, at = argument(text, at)
        return self.convert(inside, depth + 1), at

    def _third(self, text: str, at: int, depth: int) -> tuple[str, int]:
        _, at = argument(text, at)
        _, at = optional(text, at)
        _, at = argument(text, at)
        return self._first(text, at, depth)

    def _fraction(self, text: str, at: int, depth: int) -> tuple[str, int]:
        above, at = argument(text, at)
        below, at = argument(text, at)
        return f"{self.convert(above, depth + 1)}/{self.convert(below, depth + 1)}", at
