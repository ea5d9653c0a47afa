// Package render has the commands that show what the manager would create for custom resources, and whether admission accepts them,
// without a cluster or with the settings of one.
package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/review"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

const long = `Show the objects that the manager would create for custom resources.

Reads custom resources, as YAML or JSON, and prints the objects that the manager
would create for them, one document each. What the webhooks of the manager would
refuse is an error, see "validate". Actions that are not objects, such as
the registration of a model in its mesh, are printed before them as a comment.

Without --cluster, no cluster is read: --platform selects which APIs are assumed
to be served, and settings come from the variables that the manager reads, such
as MLFLOW_IMAGE, and from its flags, such as --namespace, which can follow after
"--".

With --cluster, the served APIs and the settings come from the current cluster,
and owner references have the UIDs of that cluster. Objects that could not be
read are reported on the standard error, and the exit code is 3. kubectl shows the differences to the
objects in the cluster:

  kubectl odh render -f mlflow.yaml --cluster | kubectl diff -f -

Kinds:
  `

// mlflowVersion is the release that offline settings assume; that of a real manager is its own.
const mlflowVersion = "3.14.0"

// options are the flags of the command.
type options struct {
	*cli.Options
	file, platform string
	cluster        bool
}

const examples = `  kubectl odh render -f mlflow.yaml
  kubectl odh render -f ray.yaml -n team --platform openshift
  kubectl odh render -f mlflow.yaml -- --namespace=tracking
  kubectl odh render -f mlflow.yaml --cluster`

// Command shows what the manager would create for custom resources.
func Command(common *cli.Options) *cobra.Command {
	o := options{Options: common}
	c := &cobra.Command{
		Use: "render -f FILE [-- MANAGER-FLAGS...]", Short: "Show the objects that the manager would create for custom resources",
		Long: long + strings.Join(kinds.Table().Names(), "\n  "), Example: examples,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.addTo(c, "Take the served APIs and the settings from the current cluster.")
	o.AddOutput(c)
	return c
}

// addTo gives a command the flags that say what is read; cluster says what the current one is for.
func (o *options) addTo(c *cobra.Command, cluster string) {
	c.Flags().StringVarP(&o.file, "filename", "f", "", `File with custom resources; "-" reads the standard input.`)
	c.Flags().StringVar(&o.platform, "platform", render.DefaultPlatform, "Kind of cluster to assume: "+strings.Join(render.Platforms(), ", ")+".")
	c.Flags().BoolVar(&o.cluster, "cluster", false, cluster)
}

func (o options) run(ctx context.Context, args []string) error {
	documents, err := o.read("render", args)
	if err != nil {
		return err
	}
	var in *source
	if o.cluster {
		in, err = o.connected(ctx)
	} else {
		in, err = o.offline(ctx, args)
	}
	if err != nil {
		return err
	}
	return o.show(ctx, documents, in)
}

// read reads the custom resources for a command with settings as its arguments.
func (o options) read(command string, args []string) ([]*unstructured.Unstructured, error) {
	switch {
	case o.cluster && len(args) > 0:
		return nil, fmt.Errorf("%s: %q are settings, which come from the cluster; leave them out, or leave out --cluster", command, args)
	case o.file == "":
		return nil, fmt.Errorf(`%s: name the file with custom resources: %s -f FILE ("-" reads the standard input)`, command, command)
	}
	in := o.In
	if o.file != "-" {
		text, err := os.ReadFile(o.file)
		if err != nil {
			return nil, fmt.Errorf("reading the custom resources: %w", err)
		}
		in = bytes.NewReader(text)
	}
	return render.Documents(in)
}

// offline is an assumed cluster without objects, and with every component on, so that every kind can be rendered.
func (o options) offline(ctx context.Context, args []string) (*source, error) {
	served, unknown := render.Platform(o.platform)
	program := config.Program{Components: kinds.Names(), Selection: kinds.Names(), MLflowVersion: mlflowVersion}
	loaded, wrong := config.Load(program, args, o.Lookup, os.ReadFile)
	if err := cmp.Or(unknown, wrong); err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	env := render.Env{Config: loaded, Capabilities: served, Version: o.Version, Namespace: o.Namespace(), Review: review.In(ctx)}
	return &source{env: env}, nil
}

// list is what -o json prints: one List, and the notes beside it.
type list struct {
	APIVersion string                       `json:"apiVersion"`
	Kind       string                       `json:"kind"`
	Items      []*unstructured.Unstructured `json:"items"`
	Notes      []string                     `json:"notes,omitempty"`
}

// show prints the objects of documents. What could not be read for it is reported on the standard error, apart from the objects.
func (o options) show(ctx context.Context, documents []*unstructured.Unstructured, in *source) error {
	var text bytes.Buffer
	l := list{APIVersion: "v1", Kind: "List", Items: []*unstructured.Unstructured{}}
	v := cli.View{Text: func(screen.Style) string { return text.String() }}
	table := kinds.Table()
	for _, obj := range documents {
		result, err := table.Render(in.stored(ctx, obj))
		if err != nil {
			return err
		}
		if err := result.Write(&text); err != nil {
			return err
		}
		l.Items, l.Notes = append(l.Items, result.Objects...), append(l.Notes, result.Notes...)
		for _, u := range result.Objects {
			v.Names = append(v.Names, cli.Name(u.GroupVersionKind().GroupKind(), u.GetName()))
		}
	}
	for _, note := range in.notes() {
		fmt.Fprintf(o.ErrOut, "Note: %s\n", note)
		l.Notes, v.Err = append(l.Notes, note), cli.ErrUnknown
	}
	if *o.Print.OutputFormat == "yaml" {
		*o.Print.OutputFormat = "" // the text is YAML, one document for each object
	}
	v.Object = l
	return o.Show(ctx, func(context.Context) (cli.View, error) { return v, nil })
}

// source is a cluster to render for.
type source struct {
	reader fetch.Reader
	env    render.Env
	// settings tells of those of the manager that could not be read.
	settings string
}

// notes say what could not be read, so that a default or nothing is used instead.
func (s *source) notes() []string {
	var notes []string
	if s.settings != "" {
		notes = append(notes, s.settings)
	}
	for _, line := range s.reader.Lines() {
		notes = append(notes, line+"; that counts as not there")
	}
	return notes
}

// connected reads what the cluster serves, and the settings of its manager.
func (o options) connected(ctx context.Context) (*source, error) {
	cluster, reader, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	manager, err := installed.Require(ctx, o.Options, reader)
	if err != nil {
		return nil, fmt.Errorf("%w, or leave out --cluster", err)
	}
	if !manager.Settings.Known {
		return nil, fmt.Errorf("the settings of the manager in namespace %s cannot be read: %s", manager.Deployment.Namespace, manager.Settings.Problem)
	}
	s := newSource(ctx, reader, manager, cluster.Namespace)
	s.settings = manager.Settings.Unreadable()
	if u := s.get(ctx, "Ingress.config.openshift.io", "", "cluster"); u != nil { // names where routers of OpenShift publish
		s.env.Domain = nested.Text(u.Object, "spec", "domain")
	}
	s.env.Capabilities = s.env.Capabilities.WithPlatformKubeRay(capability.IsPlatformKubeRay(
		s.get(ctx, "MutatingWebhookConfiguration.admissionregistration.k8s.io", "", capability.PlatformKubeRayConfiguration)))
	s.env.KubeRay = raycluster.KubeRayNamespaces(
		s.get(ctx, "ClusterRoleBinding.rbac.authorization.k8s.io", "", raycluster.KubeRayName),
		s.get(ctx, "Deployment.apps", manager.Deployment.Namespace, raycluster.KubeRayName),
		s.get(ctx, "DSCInitialization.dscinitialization.opendatahub.io", "", raycluster.InitializationName))
	return s, nil
}

// newSource has what the cluster serves, and the settings of a manager.
func newSource(ctx context.Context, reader fetch.Reader, manager installed.Manager, namespace string) *source {
	known := slices.DeleteFunc(append(capability.Known(), aihub.Kind), func(kind schema.GroupVersionKind) bool { return !reader.Has(kind) })
	s := &source{reader: reader, env: render.Env{
		Config: manager.Settings.Config, Capabilities: capability.NewSet(known...), Version: manager.Version, Namespace: namespace,
		Review: review.In(ctx),
	}}
	s.env.ConfigMaps = func(namespace, name string) *corev1.ConfigMap {
		return fetch.As[corev1.ConfigMap](s.get(ctx, "ConfigMap", namespace, name))
	}
	s.env.Config.MLflow.Version = mlflowVersion
	return s
}

// Refusals returns a function that says why a manager, whose settings are known, makes nothing of a runtime; "" when it does.
func Refusals(ctx context.Context, reader fetch.Reader, manager installed.Manager) func(*unstructured.Unstructured) string {
	if !manager.Settings.Known {
		return func(*unstructured.Unstructured) string { return "" }
	}
	s := newSource(ctx, reader, manager, manager.Settings.Config.ModelMesh.Namespace)
	table := kinds.Table()
	return func(u *unstructured.Unstructured) string {
		_, err := table.Render(u, s.env)
		if err == nil {
			return ""
		}
		return cmp.Or(errors.Unwrap(err), err).Error()
	}
}

// get reads an object, nil for one that does not exist. What could not be read is noted, and counts as not there.
func (s *source) get(ctx context.Context, kind, namespace, name string) *unstructured.Unstructured {
	u, _ := s.reader.Get(ctx, s.reader.Kind(kind), namespace, name)
	return u
}

// stored copies from the custom resource in the cluster what its objects depend on: the UID for owner references, whether a database
// was migrated, and the version of the manager that admitted a RayCluster.
func (s *source) stored(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, render.Env) {
	env := s.env
	if s.reader.Exact(obj.GroupVersionKind()).Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(env.Namespace)
	}
	u := s.get(ctx, obj.GroupVersionKind().GroupKind().String(), obj.GetNamespace(), obj.GetName())
	if u == nil {
		return obj, env
	}
	obj.SetUID(u.GetUID())
	obj.SetGeneration(u.GetGeneration())
	switch obj.GetKind() {
	case "MLflow":
		if status, has := u.Object["status"]; has {
			obj.Object["status"] = status
		}
	case raycluster.GVK.Kind:
		env.Version = cmp.Or(u.GetAnnotations()[raycluster.AnnotationVersion], env.Version)
	}
	return obj, env
}
