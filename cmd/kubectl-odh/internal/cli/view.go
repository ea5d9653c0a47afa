package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"runtime"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// Formats of -o beside those of [genericclioptions.PrintFlags].
const (
	formatText = "text"
	formatWide = "wide"
	formatName = "name"
)

// apiVersion of what -o json and the like print.
const apiVersion = "cli.platform.opendatahub.io/v1"

// View is what a command shows.
type View struct {
	// Kind and Object are what programs get, Text is for people.
	Kind   string
	Object any
	Text   func(screen.Style) string
	// Names are the resources for -o name.
	Names []metav1.PartialObjectMetadata
	// Changing is what -w looks at to see whether something has changed.
	Changing any
	// Err is ErrWrong, ErrUnknown or nil.
	Err error
}

// Show looks and prints what is seen, with -w again whenever that changes.
func (o *Options) Show(ctx context.Context, look func(context.Context) (View, error)) error {
	view, err := look(ctx)
	if err != nil {
		return err
	}
	if err := o.print(view); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if !o.watch {
		return view.Err
	}
	last := view.Changing
	err = wait.PollUntilContextCancel(ctx, o.Interval, false, func(ctx context.Context) (bool, error) {
		view, err := look(ctx)
		if err != nil || reflect.DeepEqual(view.Changing, last) {
			return false, err
		}
		last = view.Changing
		return false, o.print(view)
	})
	if ctx.Err() != nil {
		return nil // the user has seen enough
	}
	return err
}

func (o *Options) print(view View) error {
	if format := *o.Print.OutputFormat; format == "" || format == formatText || format == formatWide {
		_, err := io.WriteString(o.Out, view.Text(o.Style()))
		return err
	}
	object, err := view.object(*o.Print.OutputFormat == formatName)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	printer, err := o.Print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, o.Out)
}

// object for the printers of kubectl.
func (v View) object(names bool) (k8sruntime.Object, error) {
	if names {
		list := &unstructured.UnstructuredList{}
		for i := range v.Names {
			fields, err := k8sruntime.DefaultUnstructuredConverter.ToUnstructured(&v.Names[i])
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, unstructured.Unstructured{Object: fields})
		}
		return list, nil
	}
	content, err := json.Marshal(v.Object)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(content, &out.Object); err != nil {
		return nil, err
	}
	if out.GetKind() == "" {
		out.SetAPIVersion(apiVersion)
		out.SetKind(v.Kind)
	}
	return out, nil
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
