// Package render is the sub-command that shows the objects that the manager would create for custom resources, without a cluster or with the
// settings of one.
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
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

const long = `Show the objects that the manager would create for custom resources, as YAML documents.

If the webhooks of the manager would reject a custom resource, the command fails. Effects other than
objects, such as the registration of a model in its mesh, are printed before the objects as a comment.

Without --cluster, no cluster is read: --platform selects which APIs are assumed to be served, and
settings come from the variables that the manager reads, such as MLFLOW_IMAGE, and from its flags,
such as --namespace, which can follow after "--". With --cluster, served APIs, settings and UIDs come
from the current cluster. Objects that cannot be read are listed on standard error, with exit code 3.

Kinds:
  `

const examples = `  kubectl odh render -f mlflow.yaml
  kubectl odh render -f ray.yaml -n team --platform openshift
  kubectl odh render -f mlflow.yaml -- --namespace=tracking
  kubectl odh render -f mlflow.yaml --cluster | kubectl diff -f -`

const (
	// mlflowVersion is the assumed release of MLflow. A real manager gets it at build time.
	mlflowVersion = "3.14.0"
	// mlflowNote is a note for an MLflow in a cluster.
	mlflowNote = "the release of MLflow is assumed to be " + mlflowVersion + ", because the cluster does not show that of the manager: the name of the migration Job " +
		"and its variable SUPPORTED_MLFLOW_VERSION can differ"
)

// options are the flags of the command.
type options struct {
	*cli.Options
	file, platform string
	cluster        bool
}

// Command returns the command render.
func Command(common *cli.Options) *cobra.Command {
	o := &options{Options: common}
	c := &cobra.Command{
		Use: "render -f FILE [-- MANAGER-FLAGS...]", Short: "Show the objects that the manager would create for custom resources",
		Long: long + strings.Join(kinds.Table().Names(), "\n  "), Example: examples,
		RunE: func(c *cobra.Command, args []string) error { return o.render(c.Context(), args) },
	}
	c.Flags().StringVarP(&o.file, "filename", "f", "", `File with custom resources; "-" reads the standard input.`)
	c.Flags().StringVar(&o.platform, "platform", render.DefaultPlatform, "Served APIs to assume: bare (Kubernetes only), plain (also Gateway API, KubeRay, KServe and Prometheus operator) or openshift (also the APIs of OpenShift).")
	_ = c.MarkFlagRequired("filename") // fails for unknown flags only
	c.Flags().BoolVar(&o.cluster, "cluster", false, "Take the served APIs and the settings from the current cluster.")
	o.AddOutput(c)
	return c
}

// read reads the custom resources and determines the environment.
func (o *options) read(ctx context.Context, args []string) ([]*unstructured.Unstructured, *environment, error) {
	if o.cluster && len(args) > 0 {
		return nil, nil, fmt.Errorf("%q are settings, but --cluster takes the settings from the cluster; leave out one of the two", args)
	}
	in := o.In
	if o.file != "-" {
		text, err := os.ReadFile(o.file)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the custom resources: %w", err)
		}
		in = bytes.NewReader(text)
	}
	documents, err := render.Documents(in)
	if err != nil {
		return nil, nil, err
	}
	if o.cluster {
		env, err := o.fromCluster(ctx)
		return documents, env, err
	}
	env, err := o.fromPlatform(ctx, args)
	return documents, env, err
}

// fromPlatform returns the environment of an assumed cluster without objects. Every component is enabled by default.
func (o *options) fromPlatform(ctx context.Context, args []string) (*environment, error) {
	served, platformErr := render.Platform(o.platform)
	program := config.Program{Components: kinds.Names(), EnabledComponents: kinds.Names(), MLflowVersion: mlflowVersion}
	loaded, configErr := config.Load(program, args, o.Lookup, os.ReadFile)
	env := render.Env{Config: loaded, Capabilities: served, Version: o.Version, Namespace: o.Namespace(), Review: review.Func(ctx)}
	return &environment{reader: fetch.Reader{Gaps: &fetch.Gaps{}}, env: env}, cmp.Or(platformErr, configErr)
}

// render prints the objects of the custom resources, and the unreadable objects to standard error.
func (o *options) render(ctx context.Context, args []string) error {
	documents, in, err := o.read(ctx, args)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	items, notes := []*unstructured.Unstructured{}, []string{}
	for _, obj := range documents {
		result, err := kinds.Table().Render(in.withStoredFields(ctx, obj))
		if o.cluster && obj.GetKind() == "MLflow" {
			result.Notes = append(result.Notes, mlflowNote)
		}
		if err == nil {
			err = result.Write(&text)
		}
		if err != nil {
			return err
		}
		items, notes = append(items, result.Objects...), append(notes, result.Notes...)
	}
	unread := in.notes()
	fmt.Fprint(o.ErrOut, cli.Notes(unread))
	if *o.Print.OutputFormat == "yaml" {
		*o.Print.OutputFormat = "" // the text is YAML, one document for each object
	}
	return o.Show(cli.View{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": items, "notes": append(notes, unread...)},
		Text:   text.String(), Err: cli.ResultError(false, len(unread) > 0),
	})
}

// environment describes the cluster to render for.
type environment struct {
	reader fetch.Reader
	env    render.Env
	// settingsNote is a note about settings of the manager that could not be read, or "".
	settingsNote string
}

// notes returns notes about settings and objects that could not be read.
func (e *environment) notes() []string {
	var notes []string
	if e.settingsNote != "" {
		notes = append(notes, e.settingsNote)
	}
	for _, line := range e.reader.Lines() {
		notes = append(notes, line+"; it is treated as missing")
	}
	return notes
}

// fromCluster returns the environment of the current cluster with the settings of its manager.
func (o *options) fromCluster(ctx context.Context) (*environment, error) {
	cluster, reader, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	gaps := &fetch.Gaps{} // not those of reader: manager.Unreadable reports them
	manager := installed.Find(ctx, reader.WithGaps(gaps), o.ManagerNamespace, o.Clock.Now())
	const advice = "name the namespace of the manager with --manager-namespace, or leave out --cluster"
	switch {
	case !manager.Found && manager.MayExistUnseen:
		return nil, fmt.Errorf("%w: %s; %s", cli.ErrUnknown, strings.Join(gaps.Lines(), "; "), advice)
	case !manager.Known():
		return nil, fmt.Errorf("the settings of the manager cannot be read: %s; %s", manager.SettingsProblem, advice)
	}
	e := newEnvironment(ctx, reader, manager, cluster.Namespace)
	e.settingsNote = manager.Unreadable()
	if u := reader.GetByName(ctx, "Ingress.config.openshift.io", "", "cluster"); u != nil { // contains the ingress domain of OpenShift
		e.env.Domain = nested.String(u.Object, "spec", "domain")
	}
	e.env.Capabilities = e.env.Capabilities.WithPlatformKubeRay(capability.IsPlatformKubeRay(
		reader.GetByName(ctx, "MutatingWebhookConfiguration.admissionregistration.k8s.io", "", capability.PlatformKubeRayConfiguration)))
	e.env.KubeRay = raycluster.KubeRayNamespaces(
		reader.GetByName(ctx, "ClusterRoleBinding.rbac.authorization.k8s.io", "", raycluster.KubeRayName),
		reader.GetByName(ctx, "Deployment.apps", manager.Namespace, raycluster.KubeRayName),
		reader.GetByName(ctx, "DSCInitialization.dscinitialization.opendatahub.io", "", raycluster.DSCInitializationName))
	return e, nil
}

// newEnvironment returns the environment with the served APIs of a reader and the settings of a manager.
func newEnvironment(ctx context.Context, reader fetch.Reader, manager installed.Manager, namespace string) *environment {
	served := slices.DeleteFunc(append(capability.Known(), aihub.Kind), func(kind schema.GroupVersionKind) bool { return !reader.Has(kind) })
	env := render.Env{
		Config: manager.Settings, Capabilities: capability.NewSet(served...), Version: manager.Version, Namespace: namespace,
		Review: review.Func(ctx), ConfigMaps: func(namespace, name string) *corev1.ConfigMap {
			return fetch.Decode[corev1.ConfigMap](reader.GetByName(ctx, "ConfigMap", namespace, name))
		},
	}
	env.Config.MLflow.Version = mlflowVersion
	return &environment{reader: reader, env: env}
}

// RuntimeProblems returns a function that returns why the manager creates no pods for a runtime, or "" if no reason is known.
func RuntimeProblems(ctx context.Context, reader fetch.Reader, manager installed.Manager) func(*unstructured.Unstructured) string {
	e := newEnvironment(ctx, reader, manager, manager.Settings.ModelMesh.Namespace)
	return func(u *unstructured.Unstructured) string {
		if !manager.Known() {
			return ""
		}
		_, err := kinds.Table().Render(u, e.env)
		if err == nil {
			return ""
		}
		return "no pods are created or changed: " + cmp.Or(errors.Unwrap(err), err).Error()
	}
}

// withStoredFields sets the namespace, and copies the fields of the stored resource that its objects depend on: UID and generation, the
// status of an MLflow, and the version of the manager that admitted a RayCluster.
func (e *environment) withStoredFields(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, render.Env) {
	env, kind := e.env, e.reader.ForGVK(obj.GroupVersionKind())
	if kind.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(env.Namespace)
	}
	u, _ := e.reader.Get(ctx, kind, obj.GetNamespace(), obj.GetName())
	if u == nil {
		return obj, env
	}
	obj.SetUID(u.GetUID())
	obj.SetGeneration(u.GetGeneration())
	switch obj.GetKind() {
	case "MLflow":
		if status, found := u.Object["status"]; found {
			obj.Object["status"] = status
		}
	case raycluster.GVK.Kind:
		env.Version = cmp.Or(u.GetAnnotations()[raycluster.AnnotationVersion], env.Version)
	}
	return obj, env
}
