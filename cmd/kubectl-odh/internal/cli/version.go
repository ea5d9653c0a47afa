package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/pflag"
)

// Version is the command that tells what this program is.
func Version() Command {
	return Command{
		Name: "version", Short: "print the version of this program",
		Setup: func(*pflag.FlagSet) Action { return printVersion },
	}
}

func printVersion(_ context.Context, call *Call, args []string) error {
	if len(args) > 0 {
		return Usage("version takes no arguments, got %q", args[0])
	}
	told := struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{call.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if call.Output != Text {
		return call.Encode(told)
	}
	_, err := fmt.Fprintf(call.Stdout, "version:  %s\ngo:       %s\nplatform: %s\n", told.Version, told.Go, told.Platform)
	return err
}
