"""Pictures and pages as text: from arrays and words to SVG and HTML, with no graph in sight."""
