"""Which legacy encoding a text is in, judged by how much the decoded text looks like a language.

Nearly any bytes decode in a single-byte encoding, so that they decode says little. Each candidate is scored by its
characters above ASCII: letters of one language's alphabet are good, the frequent ones more so; letters of no such
alphabet, symbols inside words, mixed scripts and capitals inside words are bad. Candidates are in order of how common
they are: among those that do equally well the first wins.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache

__all__ = ["guess_encoding"]

#: A language's letters above ASCII, the frequent ones first.
_WESTERN = (
    "éàèêçôûùâîïœëÿæüñ",  # French
    "üäößé",  # German
    "óíáéñúü",  # Spanish
    "óàéèíçúòïü",  # Catalan
    "ãçéáõóíêúâôàü",  # Portuguese
    "èàùòìéî",  # Italian
    "ëéïóèöü",  # Dutch
    "äåöéü",  # Swedish, Finnish
    "øåæéöü",  # Danish, Norwegian
    "áíéðóþúýæö",  # Icelandic
)
_CENTRAL = (
    "łąężśćóńź",  # Polish
    "íáěéřšžčýůúňťďó",  # Czech
    "áíéčšžýťúľôňďäóĺŕ",  # Slovak
    "áéőöüóíűú",  # Hungarian
    "ăîâşţ",  # Romanian
    "čšžćđ",  # Croatian, Slovene
)
_BALTIC = ("ėšžųįąūčę", "āēīšņūļžģķč", "äõüöšž")  # Lithuanian, Latvian, Estonian
_TURKISH = ("ıüşğçöâî",)
_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"
_UKRAINIAN = "оанівиетрслкудмпязьгбчхйжїцюєщшфґ"
_CYRILLIC = (
    _RUSSIAN,
    _UKRAINIAN,
    "аоиентрсвлдпкмзъягубчщжйцхшфюь",  # Bulgarian
    "аоиенрствкдмлјупзбгчшцжњћђљфхџ",  # Serbian
    "аоеитнрсвдклјпмузбгчшцжќњѓфљхѕџ",  # Macedonian
    "аінеорскытлядуцпмьўгзчбжхшйвфэюё",  # Belarusian
)
_GREEK = ("αοιετσνηρπκμυςλίόάωέδγήύχώφθζξβψϊϋΐΰ",)
_HEBREW = ("יוהלאתרבמשנםדעקחפצגסכטןךזףץ",)
_ARABIC = ("اليمنورتبةعدسفهكقحجشطصىخضذزءثغئظؤأإآ",)
_THAI = ("านรกอเงมยลวดทสต่้ปบคหแจพชขใไโะำิีึืุู็์ัถผซธฟณญศฉภษฎฐฒฬฝฮฆฏฑฤๆ",)

#: The characters that make up half of ordinary text.
_JAPANESE = "".join(map(chr, (*range(0x3041, 0x3094), *range(0x30A1, 0x30F7), 0x30FC))) + (
    "日一国人年大十二本中長出三時行見月後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川千水半男西電校語"
    "土木聞食車何南万毎白天母火右読友左休父雨会同事自社発者地業方新場員立開手力問代明動京目通言理体田主題意不作用度強公持野"
)
_CHINESE = (
    "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然"
    "没于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二"
    "理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气"
    "信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九性通目华报立命张活难神数件安表原车白应路期"
)
_TRADITIONAL = (
    "的一是不了在人有我他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可裡後小麼心多天而能好都然"
    "沒於起還發成事只作當想看文無開手十用主行方又如前所本見經頭面公同三已老從動兩長知民樣現分將外但身些與高意進把法此實回二"
    "理美點月明其種聲全工己話兒者向情部正名定女問力機給等幾很業最間新什打便位因重被走電四第門相次東政海口使教西再平真聽世氣"
    "信北少關並內加化由卻代軍產入先山五太水萬市眼體別處總才場師書比住員九性通目華報立命張活難神數件安表原車白應路期"
)
_KOREAN = (
    "이다는의에을가고지하한도로은서기를사리나어인아시자그대해정수일보들부과라면만있전여것스제게조상주세장구우동년원성공신미무소"
    "안경중문치위국유용관방연생진행내계선학회영적실비와했되었으까말오음"
)


@dataclass(frozen=True, slots=True)
class _Alphabetic:
    """A single-byte encoding, and the languages written in it."""

    name: str
    alphabets: tuple[str, ...]
    cost: float = 0.5


@dataclass(frozen=True, slots=True)
class _Ideographic:
    """A double-byte encoding. `base` is the standard inside it that has the everyday characters, under lead bytes up to
    `last_lead`; `common` are the most frequent ones."""

    name: str
    base: str
    last_lead: int
    common: str
    cost: float = 0.5


_CANDIDATES = (
    _Alphabetic("cp1252", _WESTERN, cost=0),
    _Ideographic("cp932", "euc_jp", 0xCF, _JAPANESE),
    _Ideographic("gb18030", "gb2312", 0xD7, _CHINESE),
    _Alphabetic("cp1251", _CYRILLIC, cost=1),
    _Ideographic("cp949", "euc_kr", 0xC8, _KOREAN),
    _Ideographic("big5", "big5", 0xC6, _TRADITIONAL),
    _Ideographic("euc_jp", "euc_jp", 0xCF, _JAPANESE),
    _Alphabetic("cp1250", _CENTRAL),
    _Alphabetic("koi8_r", (_RUSSIAN,), cost=1),
    _Alphabetic("cp1253", _GREEK, cost=1),
    _Alphabetic("cp1254", _TURKISH),
    _Alphabetic("cp1255", _HEBREW, cost=1),
    _Alphabetic("cp1256", _ARABIC, cost=1),
    _Alphabetic("cp1257", _BALTIC),
    _Alphabetic("cp874", _THAI, cost=1),
    _Alphabetic("iso8859_2", _CENTRAL, cost=1.5),
    _Alphabetic("iso8859_7", _GREEK, cost=1.5),
    _Alphabetic("iso8859_5", _CYRILLIC, cost=1.5),
    _Alphabetic("koi8_u", (_UKRAINIAN,), cost=1.5),
    _Alphabetic("cp866", (_RUSSIAN,), cost=1.5),
    _Alphabetic("iso8859_6", _ARABIC, cost=1.5),
    _Alphabetic("mac_roman", _WESTERN, cost=1.5),
    _Alphabetic("mac_cyrillic", _CYRILLIC, cost=1.5),
    _Alphabetic("cp850", _WESTERN, cost=1.5),
)

_TYPOGRAPHY = frozenset("“”„‘’‚‹›–—…«»•·°§©®™€£¥¿¡\xa0\xad×½¼¾²³№ªº")  # noqa: RUF001 - meant as they are
_JOINERS = frozenset("’‘·\xad–—")  # noqa: RUF001
# On the shape of a text (`_shape`): a capital after a small letter, two scripts in a word, a symbol in a word.
_ODD = re.compile(rb"(?<=[ab])[AB]|(?<=[aA])[bBc]|(?<=[bBc])[aA]|(?<=[aAbBc])#(?=[aAbBc])")
_CAPITALS = re.compile(rb"(?<=[AB])[AB]")


def guess_encoding(sample: bytes) -> tuple[str, float]:
    """The likeliest encoding and its score: 1 is text of the most frequent letters only, 0 or less is hardly text.

    With few bytes above ASCII the order of the candidates decides, with many the score.
    """
    counts = Counter(byte for byte in sample if byte > 0x7F)
    total = max(1, counts.total())
    best, best_score = "", float("-inf")
    for candidate in _CANDIDATES:
        if isinstance(candidate, _Alphabetic):
            score = _alphabetic_score(sample, counts, candidate)
        else:
            score = _ideographic_score(sample, candidate)
        score -= candidate.cost / total
        if score > best_score:
            best, best_score = candidate.name, score
    return best, best_score


def _alphabetic_score(sample: bytes, counts: Counter[int], candidate: _Alphabetic) -> float:
    shapes, alphabets = _tables(candidate)
    goodness = max(sum(n * points[byte] for byte, n in counts.items()) for points in alphabets)
    return (goodness - _oddness(sample.translate(shapes))) / max(1, counts.total())


def _ideographic_score(sample: bytes, candidate: _Ideographic) -> float:
    text = sample.decode(candidate.name, "replace")
    if 20 * text.count("\ufffd") > len(text):
        return -1.0
    counts = Counter(character for character in text if character > "\x7f")
    goodness = sum(n * _ideograph_goodness(character, candidate) for character, n in counts.items())
    return (goodness - _oddness(text.translate(_SHAPES).encode("ascii"))) / max(1, counts.total())


def _oddness(shape: bytes) -> float:
    return 2 * len(_ODD.findall(shape)) + 0.1 * len(_CAPITALS.findall(shape))


@cache
def _tables(candidate: _Alphabetic) -> tuple[bytes, tuple[tuple[float, ...], ...]]:
    """The shape of each byte, and its goodness in each alphabet."""
    characters = bytes(range(256)).decode(candidate.name, "replace")
    shapes = "".join(map(_shape, characters)).encode("ascii")
    everything = "".join(candidate.alphabets)
    return shapes, tuple(
        tuple(_letter_goodness(character, alphabet, everything) for character in characters)
        for alphabet in candidate.alphabets
    )


def _letter_goodness(character: str, alphabet: str, everything: str) -> float:
    letter = character.lower()
    if letter in alphabet:
        return 1 - alphabet.index(letter) / len(alphabet) / 2
    if character in _TYPOGRAPHY:
        return 0.7
    if letter in everything:
        return -0.3  # a name, or a word of a neighbour
    return -1 if character.isprintable() and character != "\ufffd" else -4


def _ideograph_goodness(character: str, candidate: _Ideographic) -> float:
    if character in candidate.common:
        return 1
    if "\u3000" <= character <= "\u301f" or "\uff01" <= character <= "\uff5e" or character in _TYPOGRAPHY:
        return 0.6  # punctuation and full-width forms
    encoded = character.encode(candidate.base, "ignore")
    if len(encoded) == 2 and encoded[0] <= candidate.last_lead:
        return 0.6
    return -0.4 if character.isprintable() and character != "\ufffd" else -4


def _shape(character: str) -> str:
    """a, A: Latin small and capital; b, B: of other scripts; c: letters without case; #: a symbol; space: the rest."""
    category = unicodedata.category(character)
    if character in _JOINERS or (character.isascii() and category[0] != "L"):
        return " "
    if category in ("Ll", "Lu"):
        letter = "a" if unicodedata.name(character, "").startswith("LATIN") else "b"
        return letter if category == "Ll" else letter.upper()
    return "c" if category[0] in "LM" else " " if category[0] in "ZN" else "#"


class _Shapes(dict[int, str]):
    def __missing__(self, point: int) -> str:
        return self.setdefault(point, _shape(chr(point)))


_SHAPES = _Shapes()
