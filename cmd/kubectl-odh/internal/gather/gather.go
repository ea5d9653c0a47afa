// Package gather writes the data for a support case into an archive: the manager, resources and their objects, events and logs. It removes
// the credentials that package redact recognizes.
package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/doctor"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/status"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/tree"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

const long = `Collect data for a support case into an archive. Nothing in the cluster is changed.

Of Secrets it contains names, types and the names of keys. Their values, and other credentials that
are recognized, are removed from everything else. Review the archive before you send it.

What could not be read is listed in gaps.txt, and the exit code is then 3.`

const examples = `  kubectl odh gather
  kubectl odh gather -n team --file team.tar.gz`

// Command returns the command gather.
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

// write collects the data and writes the archive.
func (g *collector) write(ctx context.Context, file string, lines int64) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating the archive: %w", err)
	}
	compressed := gzip.NewWriter(out)
	a := &archive{now: g.o.Clock.Now(), tar: tar.NewWriter(compressed)}
	g.archive = a
	g.collect(ctx, lines)
	a.add("status.yaml", g.report(ctx, status.Command, "status"))
	a.add("doctor.yaml", g.report(ctx, doctor.Command, "doctor"))
	notes := append(g.notes, g.Lines()...)
	if ctx.Err() != nil {
		notes = append(notes, "stopped before everything was read, by a signal or because of --timeout; raise --timeout, or run gather again")
	}
	for _, name := range a.truncated {
		notes = append(notes, name+" was truncated: it or the archive is too large")
	}
	a.add("gaps.txt", g.values.Text(strings.Join(notes, "\n")))
	if err := errors.Join(a.err, a.tar.Close(), compressed.Close(), out.Close()); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	fmt.Fprintf(g.o.Out, "%s: %d files, %d KiB before compression\n", file, a.files, a.total/1024)
	fmt.Fprint(g.o.ErrOut, cli.Notes(notes))
	return cli.ResultError(false, len(notes) > 0)
}

// report returns the output of another command of this program.
func (g *collector) report(ctx context.Context, command cli.Command, name string) string {
	var out bytes.Buffer
	o := *g.o
	o.Out, o.ErrOut, o.Print = &out, &out, genericclioptions.NewPrintFlags("")
	cli.Run(ctx, &o, []string{name, "-o", "yaml"}, []cli.Command{command})
	return g.values.Text(out.String())
}

// Limits of an archive, in bytes before compression.
const (
	maxFileBytes  = 10 << 20
	maxTotalBytes = 200 << 20
)

// archive is a tar file. It is safe for concurrent use.
type archive struct {
	now time.Time

	mu           sync.Mutex
	tar          *tar.Writer
	files, total int
	// err is the first error, truncated holds the names of truncated files.
	err       error
	truncated []string
}

// add writes a file, truncated to the limits of the archive, unless it is empty.
func (a *archive) add(name, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if remaining := min(maxFileBytes, maxTotalBytes-a.total); len(text) > remaining {
		a.truncated = append(a.truncated, name)
		text = text[:remaining]
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

// relatedKinds are kinds of other operators and of Kubernetes on which the state of resources depends.
var relatedKinds = []string{
	"RayJob.ray.io", "RayService.ray.io", "Workload.kueue.x-k8s.io", "LocalQueue.kueue.x-k8s.io", "ClusterQueue.kueue.x-k8s.io",
	"Auth.services.platform.opendatahub.io", "DSCInitialization.dscinitialization.opendatahub.io",
	"DataScienceCluster.datasciencecluster.opendatahub.io", "ClusterVersion.config.openshift.io", "Ingress.config.openshift.io",
	"Node", "APIService.apiregistration.k8s.io", "CustomResourceDefinition.apiextensions.k8s.io",
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io",
}

// managerNamespaceKinds are the kinds whose objects are all collected from the namespace of the manager. For ConfigMaps see isSettings.
var managerNamespaceKinds = []string{
	"Service", "ServiceAccount", "Lease.coordination.k8s.io", "NetworkPolicy.networking.k8s.io", "Role.rbac.authorization.k8s.io",
	"RoleBinding.rbac.authorization.k8s.io", "EndpointSlice.discovery.k8s.io",
}

// isSettings reports whether a ConfigMap has settings of the manager. The values of other ConfigMaps are not collected.
func isSettings(u *unstructured.Unstructured) bool {
	return u.GetKind() == "ConfigMap" && (strings.HasPrefix(u.GetName(), "odh-platform-operator") || slices.Contains([]string{
		"codeflare-operator-config", "appwrapper-operator-config", meshsettings.ConfigMapName, meshsettings.DefaultsName}, u.GetName()))
}

// collector reads the cluster.
type collector struct {
	fetch.Reader
	o       *cli.Options
	cluster *cli.Cluster
	notes   []string
	archive *archive
	// found holds the objects by file and name.
	found map[string]map[string]*unstructured.Unstructured
	// values redacts the values of the Secrets in the namespaces of the resources.
	values redact.Values
}

// collect reads Secrets before it writes anything, so that their values can be redacted in all files.
func (g *collector) collect(ctx context.Context, lines int64) {
	var roots []*unstructured.Unstructured
	for _, kind := range kinds.All() {
		roots = append(roots, g.list(ctx, kind.GroupKind().String(), g.o.Namespace(), kind.Selects)...)
	}
	managerNamespace := ""
	if d := installed.Find(ctx, g.Reader, g.o.ManagerNamespace, g.o.Clock.Now()).Live; d != nil {
		managerNamespace, roots = d.GetNamespace(), append(roots, d)
	}
	parts, notes := tree.Parts(ctx, g.WithGaps(&fetch.Gaps{}), roots)
	g.notes = append(g.notes, notes...)
	namespaces, secrets := map[string]bool{}, map[string]bool{}
	for _, n := range parts {
		namespaces[n.Namespace] = true
		if n.Kind == "Secret" {
			secrets[n.Namespace+"/"+n.Name] = true
		} else {
			g.store(n.Live)
		}
	}
	delete(namespaces, "") // cluster-scoped objects
	var contents []*corev1.Secret
	for namespace := range namespaces {
		g.list(ctx, "Secret", namespace, func(u *unstructured.Unstructured) bool {
			contents = append(contents, fetch.Decode[corev1.Secret](u))
			return namespace == managerNamespace || secrets[namespace+"/"+u.GetName()]
		})
		g.list(ctx, "Event", namespace, nil)
	}
	g.values = redact.ValuesOf(contents...)
	if managerNamespace != "" {
		g.list(ctx, "ConfigMap", managerNamespace, isSettings)
		for _, kind := range managerNamespaceKinds {
			g.list(ctx, kind, managerNamespace, nil)
		}
	}
	for _, kind := range relatedKinds {
		g.list(ctx, kind, g.o.Namespace(), nil)
	}
	fetch.Map(parts, func(n *tree.Node) struct{} {
		if n.Kind == "Pod" {
			g.logs(ctx, fetch.Decode[corev1.Pod](n.Live), lines)
		}
		return struct{}{}
	})
	g.writeObjects()
}

// list returns and stores the objects of a kind that match.
func (g *collector) list(ctx context.Context, kind, namespace string, matches func(*unstructured.Unstructured) bool) (out []*unstructured.Unstructured) {
	found, _ := g.List(ctx, g.Kind(kind), namespace, metav1.ListOptions{})
	for i := range found {
		if u := &found[i]; matches == nil || matches(u) {
			out = append(out, u)
			g.store(u)
		}
	}
	return out
}

func (g *collector) store(u *unstructured.Unstructured) {
	folder := "cluster/"
	if u.GetNamespace() != "" {
		folder = "namespaces/" + u.GetNamespace() + "/"
	}
	file := folder + g.Kind(u.GroupVersionKind().GroupKind().String()).GVR().GroupResource().String() + ".yaml"
	if g.found[file] == nil {
		g.found[file] = map[string]*unstructured.Unstructured{}
	}
	g.found[file][u.GetName()] = u
}

// writeObjects writes a file for each kind in each namespace.
func (g *collector) writeObjects() {
	for _, file := range slices.Sorted(maps.Keys(g.found)) {
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(g.found[file])) {
			u := g.found[file][name]
			u.SetManagedFields(nil)
			if u.GetKind() == "CustomResourceDefinition" {
				for _, version := range nested.List(u.Object, "spec", "versions") {
					delete(nested.Map(version), "schema") // large, and known from the release
				}
			}
			settings := map[string]any{"data": runtime.DeepCopyJSONValue(u.Object["data"])}
			g.values.Object(u.Object)
			if isSettings(u) {
				g.values.Object(settings)
				u.Object["data"] = settings["data"]
			}
			content, _ := yaml.Marshal(u.Object) // decoded from JSON
			text.WriteString("---\n" + string(content))
		}
		g.archive.add(file, text.String())
	}
}

// logs collects the logs of the containers of a pod, and of their previous instances.
func (g *collector) logs(ctx context.Context, pod *corev1.Pod, lines int64) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		g.log(ctx, pod, corev1.PodLogOptions{Container: c.Name, TailLines: &lines}, "")
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.RestartCount > 0 {
			g.log(ctx, pod, corev1.PodLogOptions{Container: s.Name, TailLines: &lines, Previous: true}, ".previous")
		}
	}
}

// log collects one log, even if an error truncates it.
func (g *collector) log(ctx context.Context, pod *corev1.Pod, options corev1.PodLogOptions, suffix string) {
	options.Timestamps, options.LimitBytes = true, new(int64(maxFileBytes))
	var text []byte
	stream, err := g.cluster.Pods.Pods(pod.Namespace).GetLogs(pod.Name, &options).Stream(ctx)
	if err == nil {
		text, err = io.ReadAll(stream)
		_ = stream.Close() // nothing was written
	}
	if err != nil {
		g.Note(&fetch.Gap{Verb: "read", What: fmt.Sprintf("the log of pod %s/%s, container %s", pod.Namespace, pod.Name, options.Container), Err: err})
	}
	g.archive.add(fmt.Sprintf("namespaces/%s/logs/%s/%s%s.log", pod.Namespace, pod.Name, options.Container, suffix), g.values.Text(string(text)))
}
