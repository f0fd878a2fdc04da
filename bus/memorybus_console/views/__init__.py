"""Formats results for people: tables, trees and lines, with hostile text escaped.

The functions here take typed results and read no store. Commands show what they return.
"""
