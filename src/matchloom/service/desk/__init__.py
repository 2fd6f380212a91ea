"""The desk: what the people who run a collection see and change, as routes that programs call, too."""
