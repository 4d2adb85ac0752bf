// Package onnxpb is the ONNX file format: Go code generated from the onnx.proto
// of the onnx project (Apache-2.0), with nothing added to it.
package onnxpb

//go:generate ./generate.sh
