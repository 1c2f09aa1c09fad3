//go:build tools

// Package tools imports the operators, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "sigs.k8s.io/controller-runtime/examples/builtins"
	_ "sigs.k8s.io/controller-runtime/examples/crd"
)
