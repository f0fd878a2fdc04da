"""What people read: tables, trees and lines, safe against hostile text.

Typed results enter, and nothing here asks a store. Commands show them.
"""
