// Package gather collects what a support case needs into an archive: the manager, resources, the objects that belong to them, events and
// logs. Credentials are taken out of everything, see package redact.
package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/doctor"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/status"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

const long = `Collect data for a support case into an archive. Nothing in the cluster is changed.

The archive contains the output of status and doctor, the resources that the
manager reconciles, the objects that belong to them, their events and logs, the
manager with its settings and logs, and the state of CRDs, webhooks and nodes.

Of Secrets it contains names, types and the names of keys. Their values, and other
credentials that are recognized, are removed from everything else. Review the
archive before you send it.

What could not be read is listed in gaps.txt, and the exit code is then 3.`

const examples = `  kubectl odh gather
  kubectl odh gather -n team --file team.tar.gz`

// Command collects.
func Command(o *cli.Options) *cobra.Command {
	var file string
	var timeout time.Duration
	var lines int64
	c := &cobra.Command{
		Use: "gather", Short: "Collect data for a support case into an archive", Long: long, Example: examples, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				file = "odh-gather-" + o.Clock.Now().UTC().Format("20060102-150405") + ".tar.gz"
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			cluster, reader, err := o.Read(ctx)
			if err != nil {
				return err
			}
			g := &collector{Reader: reader, o: o, cluster: cluster, found: map[string]map[string]*unstructured.Unstructured{}}
			return g.write(ctx, file, lines)
		},
	}
	c.Flags().StringVar(&file, "file", "", "File to write. By default odh-gather-TIME.tar.gz in the current directory.")
	c.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "Time after which nothing more is requested.")
	c.Flags().Int64Var(&lines, "log-lines", 20000, "Lines of each log, from its end.")
	return c
}

// write collects into a file.
func (g *collector) write(ctx context.Context, file string, lines int64) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating the archive: %w", err)
	}
	defer func() { _ = out.Close() }() // the archive is closed before, and says what was not written
	zip := gzip.NewWriter(out)
	a := &archive{now: g.o.Clock.Now(), zip: zip, tar: tar.NewWriter(zip)}
	g.archive = a
	g.collect(ctx, lines)
	a.add("status.yaml", g.report(ctx, status.Command, "status"))
	a.add("doctor.yaml", g.report(ctx, doctor.Command, "doctor"))
	notes := g.notes
	if ctx.Err() != nil {
		notes = append(notes, "the time was over before everything was read; --timeout gives more")
	}
	for _, name := range a.cut {
		notes = append(notes, name+" is not whole: it is too large")
	}
	notes = append(notes, g.Lines()...)
	a.add("gaps.txt", redact.Text(strings.Join(notes, "\n")))
	if err := a.close(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	fmt.Fprintf(g.o.Out, "%s: %d files, %d KiB before compression\n", file, a.files, a.total/1024)
	if len(notes) == 0 {
		return nil
	}
	for _, note := range notes {
		fmt.Fprintf(g.o.ErrOut, "Note: %s\n", note)
	}
	return cli.ErrUnknown
}

// report runs another command of this program, and returns what it prints.
func (g *collector) report(ctx context.Context, command cli.Command, name string) string {
	var out bytes.Buffer
	o := *g.o
	o.Out, o.ErrOut, o.Print = &out, &out, genericclioptions.NewPrintFlags("")
	cli.Run(ctx, &o, []string{name, "-o", "yaml"}, []cli.Command{command})
	return redact.Text(out.String())
}

// Bounds of an archive, in bytes before compression.
const (
	maxFile  = 10 << 20
	maxTotal = 200 << 20
)

// archive is a compressed tar file.
type archive struct {
	now time.Time

	mu    sync.Mutex
	zip   *gzip.Writer
	tar   *tar.Writer
	files int
	total int
	err   error
	// cut are files that are not whole.
	cut []string
}

// add writes a file, as far as there is room. The first error is kept for close.
func (a *archive) add(name, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if room := min(maxFile, maxTotal-a.total); len(text) > room {
		a.cut = append(a.cut, name)
		text = text[:room]
	}
	if a.err != nil || text == "" {
		return
	}
	a.files++
	a.total += len(text)
	a.err = a.tar.WriteHeader(&tar.Header{Name: "odh-gather/" + name, Mode: 0o644, Size: int64(len(text)), ModTime: a.now})
	if a.err == nil {
		_, a.err = io.WriteString(a.tar, text)
	}
}

func (a *archive) close() error {
	return errors.Join(a.err, a.tar.Close(), a.zip.Close())
}
