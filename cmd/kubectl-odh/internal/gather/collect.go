package gather

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/tree"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// related are kinds of other operators and of Kubernetes that explain the state of our resources.
var related = []string{
	"RayJob.ray.io", "RayService.ray.io", "Workload.kueue.x-k8s.io", "LocalQueue.kueue.x-k8s.io", "ClusterQueue.kueue.x-k8s.io",
	"Auth.services.platform.opendatahub.io", "DSCInitialization.dscinitialization.opendatahub.io",
	"DataScienceCluster.datasciencecluster.opendatahub.io", "ClusterVersion.config.openshift.io", "Ingress.config.openshift.io",
	"Node", "APIService.apiregistration.k8s.io", "CustomResourceDefinition.apiextensions.k8s.io",
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io",
}

// beside are kinds that are collected from the namespace of the manager, whosever they are, but for ConfigMaps: see isSettings.
var beside = []string{
	"Service", "ServiceAccount", "Lease.coordination.k8s.io", "NetworkPolicy.networking.k8s.io", "Role.rbac.authorization.k8s.io",
	"RoleBinding.rbac.authorization.k8s.io", "EndpointSlice.discovery.k8s.io",
}

// isSettings tells ConfigMaps with settings of the manager, of which the values are collected. Others may hold anything.
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
	// found are objects by the file that they belong into, and by their names.
	found map[string]map[string]*unstructured.Unstructured
}

// collect reads Secrets before it writes anything, so that their values are known where they show.
func (g *collector) collect(ctx context.Context, lines int64) {
	var roots []*unstructured.Unstructured
	for _, kind := range kinds.All() {
		roots = append(roots, g.list(ctx, kind.GroupKind().String(), g.o.Namespace(), kind.Ours)...)
	}
	home := ""
	if d := installed.Find(ctx, g.Reader, g.o.ManagerNamespace).Live; d != nil {
		home, roots = d.GetNamespace(), append(roots, d)
	}
	parts, notes := tree.Parts(ctx, g.Noting(&fetch.Gaps{}), roots)
	g.notes = append(g.notes, notes...)
	namespaces, secrets := map[string]bool{}, map[string]bool{}
	for _, n := range parts {
		namespaces[n.Namespace] = true
		if n.Kind == "Secret" {
			secrets[n.Namespace+"/"+n.Name] = true
		}
	}
	delete(namespaces, "") // of objects without one
	for namespace := range namespaces {
		g.list(ctx, "Secret", namespace, func(u *unstructured.Unstructured) bool {
			redact.Secret(fetch.As[corev1.Secret](u)) // its values are removed from everything
			return namespace == home || secrets[namespace+"/"+u.GetName()]
		})
		g.list(ctx, "Event", namespace, nil)
	}
	if home != "" {
		g.list(ctx, "ConfigMap", home, isSettings)
		for _, kind := range beside {
			g.list(ctx, kind, home, nil)
		}
	}
	for _, kind := range related {
		g.list(ctx, kind, g.o.Namespace(), nil)
	}
	parts = slices.DeleteFunc(parts, func(n *tree.Node) bool { return n.Kind == "Secret" }) // they are there already
	tree.Read(ctx, g.Reader, parts)
	for _, n := range parts {
		if n.Live != nil {
			g.keep(n.Live)
		}
	}
	g.logs(ctx, parts, lines)
	g.writeObjects()
}

// list reads the objects of a kind that are wanted, and keeps them for the archive.
func (g *collector) list(
	ctx context.Context, kind, namespace string, wanted func(*unstructured.Unstructured) bool,
) []*unstructured.Unstructured {
	found, _ := g.List(ctx, g.Kind(kind), namespace, metav1.ListOptions{})
	var out []*unstructured.Unstructured
	for i := range found {
		if u := &found[i]; wanted == nil || wanted(u) {
			out = append(out, u)
			g.keep(u)
		}
	}
	return out
}

// keep remembers an object for the archive.
func (g *collector) keep(u *unstructured.Unstructured) {
	kind := g.Kind(u.GroupVersionKind().GroupKind().String())
	file := cmp.Or(u.GetNamespace(), "cluster") + "/" + kind.GVR().GroupResource().String() + ".yaml"
	if u.GetNamespace() != "" {
		file = "namespaces/" + file
	}
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
					delete(nested.Map(version), "schema") // that of a release, and larger than all the rest
				}
			}
			settings := map[string]any{"data": runtime.DeepCopyJSONValue(u.Object["data"])}
			redact.Object(u.Object)
			if isSettings(u) {
				redact.Object(settings)
				u.Object["data"] = settings["data"]
			}
			content, _ := yaml.Marshal(u.Object) // it came as JSON
			text.WriteString("---\n" + string(content))
		}
		g.archive.add(file, text.String())
	}
}

// logs reads the logs of the containers of pods, and those of their predecessors.
func (g *collector) logs(ctx context.Context, parts []*tree.Node, lines int64) {
	fetch.Each(parts, func(n *tree.Node) {
		if n.Kind != "Pod" || n.Live == nil {
			return
		}
		pod := fetch.As[corev1.Pod](n.Live)
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			g.log(ctx, pod, corev1.PodLogOptions{Container: c.Name, TailLines: &lines}, "")
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if s.RestartCount > 0 {
				g.log(ctx, pod, corev1.PodLogOptions{Container: s.Name, TailLines: &lines, Previous: true}, ".previous")
			}
		}
	})
}

// log reads one log. What came before an error is kept.
func (g *collector) log(ctx context.Context, pod *corev1.Pod, options corev1.PodLogOptions, suffix string) {
	options.Timestamps, options.LimitBytes = true, new(int64(maxFile))
	var text []byte
	stream, err := g.cluster.Pods.Pods(pod.Namespace).GetLogs(pod.Name, &options).Stream(ctx)
	if err == nil {
		text, err = io.ReadAll(stream)
		_ = stream.Close() // only read
	}
	if err != nil {
		what := fmt.Sprintf("the log of pod %s/%s, container %s", pod.Namespace, pod.Name, options.Container)
		g.Note(&fetch.Gap{Verb: "read", Resource: what, Err: err})
	}
	g.archive.add(fmt.Sprintf("namespaces/%s/logs/%s/%s%s.log", pod.Namespace, pod.Name, options.Container, suffix), redact.Text(string(text)))
}
