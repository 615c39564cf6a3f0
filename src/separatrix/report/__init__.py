"""Faces of the evidence: the HTML report and the same table in the terminal."""

from separatrix.report.html import render_html, write_report

__all__ = ["render_html", "write_report"]
