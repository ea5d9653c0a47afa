package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// Formats of -o beside those of [genericclioptions.PrintFlags].
const (
	formatText = "text"
	formatWide = "wide"
)

// apiVersion of what -o json and the like print.
const apiVersion = "cli.platform.opendatahub.io/v1"

// View is what a command shows.
type View struct {
	// Kind and Object are what programs get, Text is for people.
	Kind   string
	Object any
	Text   func(screen.Style) string
	// Names are the resources for -o name; see [Name].
	Names []string
	// Changing is what -w looks at to see whether something has changed.
	Changing any
	// Err is ErrWrong, ErrUnknown or nil.
	Err error
}

// Show looks and prints what is seen, with -w again whenever that changes.
func (o *Options) Show(ctx context.Context, look func(context.Context) (View, error)) error {
	var view View
	var last []byte
	err := wait.PollUntilContextCancel(ctx, o.Interval, true, func(ctx context.Context) (done bool, err error) {
		if view, err = look(ctx); err != nil {
			return false, err
		}
		// Only what programs get is compared: other fields, such as resource versions, change without being shown.
		now, err := json.Marshal(view.Changing)
		if err == nil && !bytes.Equal(now, last) {
			last, err = now, o.print(view)
		}
		return !o.watch, err
	})
	switch {
	case o.watch && ctx.Err() != nil:
		return nil // the user has seen enough
	case err != nil:
		return err
	}
	return view.Err
}

func (o *Options) print(view View) error {
	switch *o.Print.OutputFormat {
	case "", formatText, formatWide:
		_, err := io.WriteString(o.Out, view.Text(o.Style()))
		return err
	case "name":
		for _, name := range view.Names {
			fmt.Fprintln(o.Out, name)
		}
		return nil
	}
	content, err := json.Marshal(view.Object)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	object := &unstructured.Unstructured{} // for the printers of kubectl
	if err := utiljson.Unmarshal(content, &object.Object); err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	if object.GetKind() == "" {
		object.SetAPIVersion(apiVersion)
		object.SetKind(view.Kind)
	}
	printer, err := o.Print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, o.Out)
}

// Name is the name of a resource as -o name prints it.
func Name(kind schema.GroupKind, name string) string {
	return strings.ToLower(kind.String()) + "/" + name
}

// Judgement is the end of a command that has found something wrong, or could not read everything.
func Judgement(wrong, incomplete bool) error {
	switch {
	case wrong:
		return ErrWrong
	case incomplete:
		return ErrUnknown
	}
	return nil
}

// version is the command that says what this program is.
func version(o *Options) *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			return o.print(View{
				Kind: "Version", Object: map[string]any{"version": o.Version, "go": runtime.Version(), "platform": platform},
				Text: func(screen.Style) string {
					return fmt.Sprintf("version:  %s\ngo:       %s\nplatform: %s\n", o.Version, runtime.Version(), platform)
				},
			})
		},
	}
	o.AddOutput(c)
	return c
}
