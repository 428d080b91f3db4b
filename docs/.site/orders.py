"""Makes the files of the analyst's tutorial: generated orders, as a spreadsheet program of another country saves them.

python docs/.site/orders.py
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "tutorials"
PRODUCTS = {
    "desk lamp": (24.9, 1.4),
    "office chair": (189.0, 14.5),
    "desk": (329.0, 38.0),
    "shelf": (79.5, 17.2),
    "monitor arm": (64.9, 3.1),
    "foot rest": (34.0, 2.2),
}
HEADER = "Order;Ordered;Delivered;Zip;Product;Pieces;Unit price;Total;Weight;Note"


def comma(value: float, digits: int = 2) -> str:
    """Return a number as it is written with decimal commas."""
    return f"{value:,.{digits}f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def orders(n: int, seed: int, first: date, first_number: int) -> list[dict[str, str]]:
    """Return ordinary orders of a month."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        product = str(rng.choice(list(PRODUCTS), p=[0.3, 0.2, 0.1, 0.15, 0.15, 0.1]))
        price, weight = PRODUCTS[product]
        price = round(price * rng.choice([1.0, 1.0, 0.9, 0.95]), 2)
        pieces = int(1 + rng.binomial(5, 0.25))
        ordered = first + timedelta(days=int(i * 30 / n))
        delivered = ordered + timedelta(days=int(1 + rng.poisson(3)))
        rows.append(
            {
                "Order": f"A{first_number + i}",
                "Ordered": f"{ordered:%d.%m.%Y}",
                "Delivered": f"{delivered:%d.%m.%Y}",
                "Zip": f"{rng.choice([1067, 4109, 10115, 20095, 50667, 80331]):05d}",
                "Product": product,
                "Pieces": str(pieces),
                "Unit price": comma(price),
                "Total": comma(pieces * price),
                "Weight": f"{comma(pieces * weight * rng.lognormal(0.0, 0.05), 1)} kg"
                if rng.random() > 0.06
                else "n/a",
                "Note": "gift" if rng.random() < 0.04 else "",
            }
        )
    return rows


def write(name: str, title: str, rows: list[dict[str, str]]) -> None:
    """Write a file with a title line, an empty line and column names."""
    lines = [title, "", HEADER, *(";".join(row.values()) for row in rows)]
    (FOLDER / name).write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))


def main() -> None:
    """Write the orders of March with five strange ones, and those of April, whose prices are in cents."""
    march = orders(800, 3, date(2026, 3, 1), 4000)
    march[137]["Total"] = "1.240,50"  # does not add up
    march[311]["Delivered"] = march[311]["Ordered"][:6] + "2025"
    march[402] |= {"Pieces": "250", "Total": comma(250 * float(march[402]["Unit price"].replace(",", ".")))}
    march[518]["Product"] = "garden gnome"
    march[655] |= {"Weight": "-999,0 kg"}
    write("orders-march.csv", "Orders of March 2026 (München)", march)
    april = orders(400, 4, date(2026, 3, 31), 4800)
    for row in april:  # in another unit
        price = 100 * float(row["Unit price"].replace(".", "").replace(",", "."))
        row |= {"Unit price": comma(price), "Total": comma(price * int(row["Pieces"]))}
    write("orders-april.csv", "Orders of April 2026 (München)", april)


if __name__ == "__main__":
    main()
