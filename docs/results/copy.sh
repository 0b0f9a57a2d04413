# copy.sh EXPERIMENT TO: an experiment's numbers and figures, to be kept beside the documentation.
set -e
to="$2/$(basename "$1")"
rm -rf "$to"
mkdir -p "$to"
for part in data figures; do
	if [ -d "$1/$part" ]; then cp -R "$1/$part" "$to"; fi
done
