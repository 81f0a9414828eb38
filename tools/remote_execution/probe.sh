#!/bin/sh
# Says where it runs: nothing has to be compiled to see which machine a GPU test is sent to.
echo "on $(hostname)"
