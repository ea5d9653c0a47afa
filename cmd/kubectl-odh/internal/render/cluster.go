package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/review"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// live is a real cluster.
type live struct {
	reader fetch.Reader
	set    served.Set
	env    render.Env
	// gaps are what rendering wanted to read and could not.
	gaps *fetch.Gaps
	// settings tells of those of the manager that could not be read.
	settings string
}

// notes say what could not be read, so that a default or nothing is used instead.
func (l *live) notes() []string {
	var notes []string
	if l.settings != "" {
		notes = append(notes, l.settings)
	}
	for _, line := range l.gaps.Lines() {
		notes = append(notes, line+"; that counts as not there")
	}
	return notes
}

// connect reads what the cluster serves, and the settings of its manager.
func connect(ctx context.Context, o *cli.Options) (*live, error) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, err
	}
	set, err := served.Read(ctx, cluster.Discovery)
	if err != nil {
		return nil, err
	}
	l := &live{reader: cluster.Reader(), set: set, gaps: &fetch.Gaps{}}
	var search fetch.Gaps // only what the settings lack matters here, and they tell it
	manager := installed.Find(ctx, l.reader, set, o.ManagerNamespace, cluster.Namespace, &search)
	l.settings = manager.Settings.Unreadable()
	switch {
	case manager.Deployment == nil && manager.Hidden:
		return nil, fmt.Errorf("%w: the settings of the manager are not known: %s; name its namespace with --manager-namespace, or leave out --cluster", cli.ErrUnknown, strings.Join(search.Lines(), "; "))
	case manager.Deployment == nil:
		return nil, errors.New("the cluster has no manager whose settings could be read: name its namespace with --manager-namespace, or leave out --cluster")
	case !manager.Settings.Known:
		return nil, fmt.Errorf("the settings of the manager in namespace %s cannot be read: %s", manager.Deployment.Namespace, manager.Settings.Problem)
	}
	l.fill(ctx, manager, cluster.Namespace)
	l.env.Domain = l.domain(ctx)
	l.env.KubeRay = l.kubeRay(ctx, manager.Deployment.Namespace)
	return l, nil
}

// fill takes over what the cluster serves, and the settings of a manager.
func (l *live) fill(ctx context.Context, manager installed.Manager, namespace string) {
	var has []schema.GroupVersionKind
	for _, kind := range append(capability.Known(), aihub.Kind) {
		if l.set.Has(kind) {
			has = append(has, kind)
		}
	}
	l.env = render.Env{
		Config: manager.Settings.Config, Capabilities: capability.NewSet(has...), Version: manager.Version, Namespace: namespace,
		ConfigMaps: func(namespace, name string) *corev1.ConfigMap { return l.configMap(ctx, namespace, name) }, Review: review.In(ctx),
	}
	l.env.Config.MLflow.Version = mlflowVersion
}

// Refusals returns a function that says why a manager, whose settings are known, makes nothing of a runtime; "" when it does. What could not be
// read for that is noted.
func Refusals(ctx context.Context, reader fetch.Reader, set served.Set, manager installed.Manager, gaps *fetch.Gaps) func(*unstructured.Unstructured) string {
	if !manager.Settings.Known {
		return func(*unstructured.Unstructured) string { return "" }
	}
	l := &live{reader: reader, set: set, gaps: gaps}
	l.fill(ctx, manager, manager.Settings.Config.ModelMesh.Namespace)
	table := kinds.Table()
	return func(u *unstructured.Unstructured) string {
		_, err := table.Render(u, l.env)
		if err == nil {
			return ""
		}
		return cmp.Or(errors.Unwrap(err), err).Error()
	}
}

func (l *live) get(ctx context.Context, group, kind, namespace, name string) *unstructured.Unstructured {
	k, ok := l.set.Kind(group, kind)
	if !ok {
		return nil
	}
	u, err := l.reader.Get(ctx, k, namespace, name)
	what := kind + " " + name
	if namespace != "" {
		what = kind + " " + namespace + "/" + name
	}
	if !l.gaps.Note(what, err) {
		return nil
	}
	return u
}

func (l *live) configMap(ctx context.Context, namespace, name string) *corev1.ConfigMap {
	u := l.get(ctx, "", "ConfigMap", namespace, name)
	if u == nil {
		return nil
	}
	out := &corev1.ConfigMap{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out) != nil {
		return nil // the API server stores nothing else
	}
	return out
}

// domain is where routers of OpenShift publish.
func (l *live) domain(ctx context.Context) string {
	u := l.get(ctx, "config.openshift.io", "Ingress", "", "cluster")
	if u == nil {
		return ""
	}
	domain, _, _ := unstructured.NestedString(u.Object, "spec", "domain") // another type says none
	return domain
}

// kubeRay are the namespaces of KubeRay, found as the manager finds them.
func (l *live) kubeRay(ctx context.Context, manager string) []string {
	return raycluster.KubeRayNamespaces(
		l.get(ctx, "rbac.authorization.k8s.io", "ClusterRoleBinding", "", raycluster.KubeRayName),
		l.get(ctx, "apps", "Deployment", manager, raycluster.KubeRayName),
		l.get(ctx, "dscinitialization.opendatahub.io", "DSCInitialization", "", raycluster.InitializationName))
}

// stored takes over from the custom resource in the cluster what its objects depend on: the UID for owner references, whether a database
// was migrated, and the version of the manager that admitted a RayCluster.
func (l *live) stored(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, render.Env) {
	env := l.env
	if k, ok := l.set.Exact(obj.GroupVersionKind()); ok && k.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(l.env.Namespace)
	}
	u := l.get(ctx, obj.GroupVersionKind().Group, obj.GetKind(), obj.GetNamespace(), obj.GetName())
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
