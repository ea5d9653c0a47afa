package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// apiVersion is the apiVersion of structured output.
const apiVersion = "cli.platform.opendatahub.io/v1"

// View is the output of a command.
type View struct {
	// Kind and Object are the structured output, Text is the default output.
	Kind   string
	Object any
	Text   string
	Err    error
}

// Show prints a view and returns its Err.
func (o *Options) Show(view View) error {
	if *o.Print.OutputFormat == "" {
		return cmp.Or(printers.WriteEscaped(o.Out, view.Text), view.Err)
	}
	object := &unstructured.Unstructured{} // kubectl printers require a runtime.Object
	content, err := json.Marshal(view.Object)
	if err == nil {
		err = utiljson.Unmarshal(content, &object.Object)
	}
	if err != nil {
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
	return cmp.Or(printer.PrintObj(object, o.Out), view.Err)
}

// Table has rows of cells, and an optional text below each row.
type Table struct {
	Columns []string
	Rows    [][]any
	Below   []string
}

// Add adds a row with a text below it.
func (t *Table) Add(below string, cells ...any) {
	t.Rows, t.Below = append(t.Rows, cells), append(t.Below, below)
}

// String aligns the cells as kubectl does.
func (t *Table) String() string {
	table := &metav1.Table{}
	for _, name := range t.Columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, cells := range t.Rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	var aligned bytes.Buffer
	_ = printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &aligned) // a write to a buffer cannot fail
	out, below := "", append([]string{""}, t.Below...)
	for line := range strings.Lines(aligned.String()) {
		out += strings.TrimRight(line, " \n") + "\n" + below[0]
		below = below[1:]
	}
	return out
}

// lineWidth is the maximum width of wrapped text.
const lineWidth = 110

// Wrap breaks a text between words into indented lines.
func Wrap(indent, text string) string {
	var b strings.Builder
	column := lineWidth
	for word := range strings.FieldsSeq(OneLine(text)) {
		if column += 1 + len(word); column > lineWidth {
			b.WriteString("\n" + indent)
			column = len(indent) + len(word)
		} else {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return strings.TrimPrefix(b.String()+"\n", "\n")
}

// Below returns the wrapped message of an object that needs attention, or "".
func Below(indent string, v health.Verdict) string {
	if v.State.OK() {
		return ""
	}
	return Wrap(indent, v.Message)
}

// OneLine replaces white space and control characters by single spaces. Control characters could manipulate a terminal.
func OneLine(text string) string {
	space := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
	return strings.Join(strings.FieldsFunc(text, space), " ")
}

// Notes formats notes about what could not be read.
func Notes(notes []string) string {
	text := ""
	for _, note := range notes {
		text += "Note: " + OneLine(note) + "\n"
	}
	return text
}

// Age returns the time since a point in time; "" for the zero time.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}
