"""First-stage candidates by PostgreSQL's full text, in matchloom's order. Needs psycopg.

    python postgres.py 'host=/tmp dbname=postgres' FOLDER 'I forgot my password'

The table is answers(id text, text text, url text), with a GIN index over to_tsvector('english', text).
"""

import sys

import psycopg

from matchloom import load
from matchloom.search.behind import BehindEngine

# Any word may match: what all words must match finds too little for a second stage.
FIND = """
    WITH asked AS (
        SELECT string_agg(quote_literal(lexeme), ' | ')::tsquery AS query FROM unnest(to_tsvector('english', %s))
    )
    SELECT id, text, url FROM answers, asked
    WHERE to_tsvector('english', text) @@ query
    ORDER BY ts_rank_cd(to_tsvector('english', text), query) DESC, id
    LIMIT %s
"""


def finder(connection):
    """A function of a question and a number, as BehindEngine calls it."""

    def find(question, count):
        rows = connection.execute(FIND, (question.replace("\0", " "), count)).fetchall()
        return [{"id": name, "text": text, "url": url} for name, text, url in rows]

    return find


def main(database, folder, question):
    """Print the three best answers."""
    with psycopg.connect(database) as connection:
        engine = BehindEngine(finder(connection), load(folder), candidates=100)
        for hit in engine.search(question, top=3):
            print(f"{hit.score:.3f}  {hit.id}  {hit.text}  {hit.columns['url']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
