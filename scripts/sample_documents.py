"""Write the PDF of the sample corpus: `python scripts/sample_documents.py`.

By hand, byte for byte the same each time, so that a change of the text is a change of this file.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "examples" / "docs"

#: A page each: its heading, and its paragraphs.
RESCUE = [
    (
        "Mountain rescue at Karrow Hut",
        [
            "This sheet hangs beside the radio. It is for whoever is in the house when a call for help comes in,"
            " warden or guest.",
            "The rescue sledge stands in the boot room, behind the long skis. It carries one person and two blankets,"
            " and needs four people on a steep slope, one at each rope.",
            "When the helicopter comes, keep everyone behind the woodpile until the rotor stands still, and hold on to"
            " your hats.",
        ],
    ),
    (
        "What to ask on the radio",
        [
            "Ask where they are, how many they are, and who is hurt. Ask for the height above sea level: people"
            " mistake one valley for another, but their watches know how high they are.",
            "Ask what they can see of the weather. Say when you will call again, and keep to the minute. The battery at"
            " the other end lasts longer when it is switched off in between.",
            "The rescue answers on channel 7. If nobody does within three minutes, go up to the Sarn saddle with the"
            " hand radio, where channel 9 reaches the hospital in the valley.",
        ],
    ),
    (
        "Avalanche accidents",
        [
            "Leave at once with probes, shovels and transceivers: they lie in the red chest under the stairs, eight of"
            " each. Half of those who are buried live if they are found within fifteen minutes.",
            "One person stays by the radio, writes down every call with its time, and puts the big kettle on.",
        ],
    ),
]


def main() -> None:
    path = ROOT / "wardens" / "rescue.pdf"
    path.write_bytes(pdf(RESCUE))
    print(path.relative_to(ROOT.parents[1]), path.stat().st_size)


def pdf(pages: Sequence[tuple[str, Sequence[str]]]) -> bytes:
    """A page for each heading, which the outline names too. ASCII in Helvetica, without compression."""
    count = len(pages)
    first = 5  # the objects before the pages: catalog, tree, font, outline
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(count))
    items = first + 2 * count
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Outlines /First {items} 0 R /Last {items + count - 1} 0 R /Count {count} >>",
    ]
    for number, (heading, paragraphs) in enumerate(pages):
        content = _page(heading, paragraphs)
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {first + 2 * number + 1} 0 R >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    for number, (heading, _) in enumerate(pages):
        around = [f" /Prev {items + number - 1} 0 R"] if number else []
        around += [f" /Next {items + number + 1} 0 R"] if number + 1 < count else []
        page = first + 2 * number
        objects.append(
            f"<< /Title ({_quoted(heading)}) /Parent 4 0 R{''.join(around)} /Dest [{page} 0 R /XYZ 0 842 0] >>"
        )
    body, offsets = "%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("ascii")


def _page(heading: str, paragraphs: Sequence[str]) -> str:
    lines = ["BT", "/F1 18 Tf", "1 0 0 1 72 760 Tm", f"({_quoted(heading)}) Tj", "/F1 11 Tf"]
    height = 725
    for paragraph in paragraphs:
        for line in textwrap.wrap(paragraph, 84):
            lines += [f"1 0 0 1 72 {height} Tm", f"({_quoted(line)}) Tj"]
            height -= 14
        height -= 12
    return "\n".join([*lines, "ET"])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


if __name__ == "__main__":
    main()
