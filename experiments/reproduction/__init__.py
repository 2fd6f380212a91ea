"""The tables of the papers, made again: tasks by their protocols, systems, runs and the page that shows them."""
