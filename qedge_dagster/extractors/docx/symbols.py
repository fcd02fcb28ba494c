"""Characters that are given by their place in a font of signs."""

from __future__ import annotations

__all__ = ["symbol"]

_PRIVATE_USE = range(0xE000, 0xF900)
_PLACES = range(0xF000, 0xF100)  # where such fonts have their characters

#: The font Symbol, by Adobe's encoding, from 0x20 and from 0xA0 on. Pieces of large brackets are blanks.
_SYMBOL = {
    0x20: " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_ αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
    0xA0: "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑          ⟩∫⌠ ⌡",
}
#: Of Wingdings, what means yes, no, or a direction.
_WINGDINGS = {0xFC: "✓", 0xFB: "✗", 0xFE: "☑", 0xFD: "☒", 0xA8: "☐", 0x6F: "☐", 0xDF: "←", 0xE0: "→", 0xE8: "→"}


def symbol(font: str, code: int) -> str:
    """The character as text, empty where only the font knows what it means."""
    if code not in _PRIVATE_USE:
        character = chr(code) if 0 <= code < 0x110000 else ""
        return character if character.isprintable() else ""
    place = code - _PLACES.start
    if code not in _PLACES:
        return ""
    if font.lower() == "symbol":
        for start, characters in _SYMBOL.items():
            if start <= place < start + len(characters):
                return characters[place - start].strip()
    if font.lower() == "wingdings":
        return _WINGDINGS.get(place, "")
    return ""
