"""What stands in a PostgreSQL database, wherever it stands."""

import psycopg
from psycopg import sql


def tables_with(database: str, text: str) -> list[str]:
    """Return the tables of a database in which a text stands in any column."""
    with psycopg.connect(database) as db:
        names = [row[0] for row in db.execute(
            "select table_name from information_schema.tables"
            " where table_schema = 'public' and table_type = 'BASE TABLE'")]  # fmt: skip
        asked = "select exists (select from {0} t where t::text ilike %s)"
        found = {
            name: db.execute(sql.SQL(asked).format(sql.Identifier(name)), [f"%{text}%"]).fetchone()
            for name in names
        }
    return sorted(name for name, row in found.items() if row and row[0])
