"""What tables and drawings are made of, wherever they are shown: cells, Markdown, plots."""
