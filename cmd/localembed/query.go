package main

import "github.com/spf13/cobra"

func newQuery() *cobra.Command { return &cobra.Command{Use: "query"} }
