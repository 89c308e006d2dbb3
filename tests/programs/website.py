# SPDX-License-Identifier: Apache-2.0
"""A web site to index: the same bytes on every machine."""

import os
import random

PAGES = 200
TOPICS = ("memory", "processes", "files", "networks", "signals")
WORDS = """page table entry block window fault touch map unmap host guest shim
vector barrier slot span dirty clean zero lazy commit arena ring gate drain
retire epoch gap tree node leaf root break stack heap image file offset length
limit error signal thread process kernel memory address translation register
instruction pipeline cache buffer socket packet route server client browser
search index query result ranking weight fragment metadata filter language
mountain river forest harbour village bridge winter summer garden kitchen
library museum station railway village orchestra painting novel poem essay
running walking thinking reading writing singing building testing measuring
quick brown lazy clever silent famous ancient modern narrow broad heavy light
and the of to in with under over between without before after through""".split()


def sentence(rng):
    words = [rng.choice(WORDS) for _ in range(rng.randint(5, 18))]
    return " ".join(words).capitalize() + "."


def page(number, rng):
    topic = TOPICS[number % len(TOPICS)]
    title = "%s %d: %s" % (topic.capitalize(), number,
                           " ".join(rng.choice(WORDS) for _ in range(3)))
    sections = []
    for part in range(rng.randint(2, 5)):
        paragraphs = "\n".join(
            "<p>%s</p>" % " ".join(sentence(rng)
                                   for _ in range(rng.randint(2, 8)))
            for _ in range(rng.randint(1, 4)))
        sections.append('<h2 id="part-%d">%s</h2>\n%s' % (
            part, sentence(rng).rstrip("."), paragraphs))
    links = "\n".join('<li><a href="page%03d.html">next %d</a></li>' % (
        (number * 7 + n) % PAGES, n) for n in range(3))
    return """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>%s</title></head>
<body>
<nav><ul>%s</ul></nav>
<main data-pagefind-body>
<h1>%s</h1>
%s
</main>
</body>
</html>
""" % (title, links, title, "\n".join(sections))


def make(top):
    """Makes the pages in the folder TOP, which may be there from before."""
    rng = random.Random(2)
    os.makedirs(top, exist_ok=True)
    for number in range(PAGES):
        with open(os.path.join(top, "page%03d.html" % number), "w",
                  encoding="utf-8") as out:
            out.write(page(number, rng))
    return top
