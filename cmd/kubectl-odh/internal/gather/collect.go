package gather

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/logs"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/tree"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// related are kinds of other operators and of Kubernetes that explain the state of our resources.
var related = []schema.GroupKind{
	{Group: "ray.io", Kind: "RayJob"}, {Group: "ray.io", Kind: "RayService"},
	{Group: "kueue.x-k8s.io", Kind: "Workload"}, {Group: "kueue.x-k8s.io", Kind: "LocalQueue"}, {Group: "kueue.x-k8s.io", Kind: "ClusterQueue"},
	{Group: "services.platform.opendatahub.io", Kind: "Auth"}, {Group: "dscinitialization.opendatahub.io", Kind: "DSCInitialization"},
	{Group: "datasciencecluster.opendatahub.io", Kind: "DataScienceCluster"},
	{Group: "config.openshift.io", Kind: "ClusterVersion"}, {Group: "config.openshift.io", Kind: "Ingress"},
	{Kind: "Node"}, {Group: "apiregistration.k8s.io", Kind: "APIService"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}, {Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
}

// beside are kinds that are collected from the namespace of the manager, whosever they are, but for ConfigMaps: see isSettings.
var beside = []schema.GroupKind{
	{Kind: "Service"}, {Kind: "ServiceAccount"}, {Group: "coordination.k8s.io", Kind: "Lease"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, {Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}, {Group: "discovery.k8s.io", Kind: "EndpointSlice"},
}

// isSettings tells ConfigMaps with settings of the manager, of which the values are collected. Others may hold anything.
func isSettings(u *unstructured.Unstructured) bool {
	return u.GetKind() == "ConfigMap" && (strings.HasPrefix(u.GetName(), "odh-platform-operator") || slices.Contains([]string{
		"codeflare-operator-config", "appwrapper-operator-config", meshsettings.ConfigMapName, meshsettings.DefaultsName}, u.GetName()))
}

// collector reads the cluster.
type collector struct {
	o       *cli.Options
	cluster *cli.Cluster
	reader  fetch.Reader
	set     served.Set
	gaps    fetch.Gaps
	notes   []string
	archive *archive

	mu sync.Mutex
	// found are objects by the file that they belong into, and by their names.
	found map[string]map[string]*unstructured.Unstructured
}

func newCollector(ctx context.Context, o *cli.Options, cluster *cli.Cluster) (*collector, error) {
	set, err := served.Read(ctx, cluster.Discovery)
	if err != nil {
		return nil, err
	}
	return &collector{
		o: o, cluster: cluster, set: set, reader: cluster.Reader(),
		found: map[string]map[string]*unstructured.Unstructured{},
	}, nil
}

// collect reads Secrets before it writes anything, so that their values are known where they show.
func (g *collector) collect(ctx context.Context, lines int64) {
	roots := g.roots(ctx)
	manager := installed.Find(ctx, g.reader, g.set, g.o.ManagerNamespace, g.cluster.Namespace, &g.gaps)
	home := ""
	if d := manager.Deployment; d != nil {
		home = d.Namespace
		if k, ok := g.set.Kind("apps", "Deployment"); ok {
			if u, err := g.reader.Get(ctx, k, home, d.Name); g.gaps.Note("Deployment "+d.Name, err) {
				roots = append(roots, u)
			}
		}
	}
	parts, notes, err := tree.Parts(ctx, g.cluster, roots)
	g.gaps.Note("the objects that belong to resources", err)
	g.notes = append(g.notes, notes...)
	namespaces := secretsOf(parts)
	fetch.Each(slices.Sorted(maps.Keys(namespaces)), func(namespace string) {
		g.list(ctx, schema.GroupKind{Kind: "Secret"}, namespace, func(u *unstructured.Unstructured) bool {
			learn(u)
			return namespace == home || namespaces[namespace][u.GetName()]
		})
		g.list(ctx, schema.GroupKind{Kind: "Event"}, namespace, nil)
	})
	if home != "" {
		g.list(ctx, schema.GroupKind{Kind: "ConfigMap"}, home, isSettings)
		for _, kind := range beside {
			g.list(ctx, kind, home, nil)
		}
	}
	for _, kind := range related {
		g.list(ctx, kind, g.o.Namespace(), nil)
	}
	g.parts(ctx, parts)
	g.logs(ctx, parts, lines)
	g.writeObjects()
}

// secretsOf returns the namespaces of objects, each with the names of the Secrets among them.
func secretsOf(parts []*tree.Node) map[string]map[string]bool {
	namespaces := map[string]map[string]bool{}
	for _, n := range parts {
		if n.Namespace != "" && namespaces[n.Namespace] == nil {
			namespaces[n.Namespace] = map[string]bool{}
		}
		if n.Kind == "Secret" {
			namespaces[n.Namespace][n.Name] = true
		}
	}
	return namespaces
}

// learn remembers the values of a Secret, so that they are removed where they show.
func learn(u *unstructured.Unstructured) {
	var s corev1.Secret
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s) == nil {
		redact.Secret(&s)
	}
}

// roots are the resources that components look after.
func (g *collector) roots(ctx context.Context) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, kind := range ours.AllKinds() {
		out = append(out, g.list(ctx, kind.GroupKind(), g.o.Namespace(), kind.Ours)...)
	}
	return out
}

// list reads the objects of a kind, and keeps them for the archive. A kind that is not served has none.
func (g *collector) list(ctx context.Context, kind schema.GroupKind, namespace string, wanted func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	k, ok := g.set.Kind(kind.Group, kind.Kind)
	if !ok || !k.Listable {
		return nil
	}
	if !k.Namespaced {
		namespace = ""
	}
	found, err := g.reader.List(ctx, k, namespace, metav1.ListOptions{})
	g.gaps.Note(k.Resource+" "+namespace, err)
	var out []*unstructured.Unstructured
	for i := range found {
		if u := &found[i]; wanted == nil || wanted(u) {
			out = append(out, u)
		}
	}
	for _, u := range out {
		g.keep(k, u)
	}
	return out
}

// parts reads the objects that belong to resources, all of a kind and a namespace at once. Secrets are there already.
func (g *collector) parts(ctx context.Context, parts []*tree.Node) {
	groups := map[string][]*tree.Node{}
	for _, n := range parts {
		if n.Kind != "Secret" {
			key := n.APIVersion + " " + n.Kind + " " + n.Namespace
			groups[key] = append(groups[key], n)
		}
	}
	fetch.Each(slices.Collect(maps.Values(groups)), func(nodes []*tree.Node) {
		k, ok := g.set.Exact(schema.FromAPIVersionAndKind(nodes[0].APIVersion, nodes[0].Kind))
		if !ok {
			return
		}
		found, err := g.reader.List(ctx, k, nodes[0].Namespace, metav1.ListOptions{})
		g.gaps.Note(k.Resource+" "+nodes[0].Namespace, err)
		for i := range found {
			if slices.ContainsFunc(nodes, func(n *tree.Node) bool { return n.Name == found[i].GetName() }) {
				g.keep(k, &found[i])
			}
		}
	})
}

// keep remembers an object for the archive.
func (g *collector) keep(kind served.Kind, u *unstructured.Unstructured) {
	file := cmp.Or(u.GetNamespace(), "cluster") + "/" + kind.GVR().GroupResource().String() + ".yaml"
	if u.GetNamespace() != "" {
		file = "namespaces/" + file
	}
	g.mu.Lock()
	defer g.mu.Unlock()
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
				versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
				for _, version := range versions {
					delete(version.(map[string]any), "schema") // that of a release, and larger than all the rest
				}
				_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions") // its place exists
			}
			settings := map[string]any{"data": runtime.DeepCopyJSONValue(u.Object["data"])}
			redact.Object(u.Object)
			if isSettings(u) {
				redact.Object(settings)
				u.Object["data"] = settings["data"]
			}
			content, err := yaml.Marshal(u.Object)
			g.gaps.Note(file, err)
			text.WriteString("---\n" + string(content))
		}
		g.archive.add(file, text.String())
	}
}

// logs reads the logs of pods, and those of their previous containers.
func (g *collector) logs(ctx context.Context, parts []*tree.Node, lines int64) {
	limit := int64(maxFile)
	pods := slices.DeleteFunc(slices.Clone(parts), func(n *tree.Node) bool { return n.Kind != "Pod" })
	fetch.Each(pods, func(n *tree.Node) {
		u := g.found["namespaces/"+n.Namespace+"/pods.yaml"][n.Name]
		var pod corev1.Pod
		if u == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &pod) != nil {
			return
		}
		for suffix, previous := range map[string]bool{"": false, ".previous": true} {
			for _, s := range logs.Streams(&pod, corev1.PodLogOptions{Previous: previous, TailLines: &lines, LimitBytes: &limit, Timestamps: true}) {
				var text strings.Builder
				err := s.Lines(ctx, g.cluster, func(line string) { text.WriteString(line) })
				g.gaps.Note(fmt.Sprintf("the log of pod %s/%s, container %s", s.Namespace, s.Pod, s.Container), err)
				g.archive.add(fmt.Sprintf("namespaces/%s/logs/%s/%s%s.log", s.Namespace, s.Pod, s.Container, suffix), redact.Text(text.String()))
			}
		}
	})
}
