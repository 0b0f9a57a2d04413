"""The kinds of sections of a report, one file each.

Every file has a NamedTuple for the data, with a `kind`, a `name` and a `title`, and the same functions:

read(part)                  the data from JSON; an error names the place in the file
write(section, folder)      the data as JSON; files that belong to it go to the folder
labels(section)             what it draws in the colors of the palette
html(section, styles)       what the page shows
figure(section, styles)     the same as a picture for a file, or None
rows(section)               the numbers, the first row being their names; they go to CSV

`lexrl.report.page.KINDS` lists them; `page.add_kind` adds one from elsewhere.
"""
