#!/bin/sh
# Bundles the drawing libraries of the HTML report, of the versions of
# package-lock.json, with their licences; needs npm. Run it when these change.
set -eu
cd "$(dirname "$0")/../.."
OUT=$PWD/pybuild/html
mkdir -p build/drawing
cp .ci/drawing/drawing.js .ci/drawing/package*.json build/drawing
cd build/drawing
npm ci --silent --ignore-scripts
node node_modules/esbuild/install.js
npx esbuild drawing.js --bundle --minify --format=iife --global-name=drawing \
    --legal-comments=none --target=es2020 --outfile=$OUT/drawing.min.js
(
    echo "The HTML report holds these libraries, as they are."
    for part in echarts/LICENSE echarts/NOTICE echarts/licenses/LICENSE-d3 \
        zrender/LICENSE tslib/LICENSE.txt @dagrejs/dagre/LICENSE \
        @dagrejs/graphlib/LICENSE; do
        printf '\n==== %s ====\n\n' "$part"
        cat "node_modules/$part"
    done
) | tr -d '\r' | sed 's/[[:space:]]*$//' >$OUT/LICENSES.txt
ls -l $OUT/drawing.min.js $OUT/LICENSES.txt
