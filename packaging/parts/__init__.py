"""Parts of the packages.

place     names, versions and times
tools     programs that build, in versions that are pinned
compiled  binaries
pages     manual pages and completions
notices   licences of others, and the bill of materials
stage     the tree of files that a package has
archive, debian, rpm, wheel, oci   packages of it
compare   two builds, byte by byte
"""
