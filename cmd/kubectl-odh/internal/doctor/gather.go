package doctor

import (
	"context"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	servingv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	servingv1beta1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// certificateSecret holds the certificate that the manager issues for itself.
const certificateSecret = names.OperatorName + "-webhook-cert"

// neighbours are CRDs of others that matter to us.
var neighbours = []string{
	"rayclusters.ray.io", "servingruntimes.serving.kserve.io", "clusterservingruntimes.serving.kserve.io", "inferenceservices.serving.kserve.io",
}

// gatherer reads the cluster. Tasks of one stage run at once.
type gatherer struct {
	reader fetch.Reader
	set    served.Set
	ships  Shipped

	mu    sync.Mutex
	facts *Facts
	fetch.Gaps
}

// gather finds out everything. An error means that nothing was found out.
func gather(ctx context.Context, o *cli.Options, cluster *cli.Cluster, ships Shipped) (*Facts, error) {
	set, err := served.Read(ctx, cluster.Discovery)
	if err != nil {
		return nil, err
	}
	g := &gatherer{
		reader: fetch.Reader{Objects: cluster.Dynamic, Metadata: cluster.Metadata}, set: set, ships: ships,
		facts: &Facts{
			Now: o.Clock.Now(), Plugin: o.Version, Served: set, CRDs: map[string]*apiextensionsv1.CustomResourceDefinition{},
			Services: map[types.NamespacedName]int{}, UserRoles: map[string]bool{}, Connected: map[string]int{}, gaps: map[topic][]Gap{},
		},
	}
	if version, err := cluster.Discovery.ServerVersion(); err == nil {
		g.facts.Server = version.GitVersion
	}
	first := []func(){
		func() { g.manager(ctx, o, cluster) },
		func() { g.crds(ctx) }, func() { g.originals(ctx) }, func() { g.webhooks(ctx) }, func() { g.userRoles(ctx) }, func() { g.resources(ctx) },
		func() { g.serviceCA(ctx) }, func() { g.meshNamespaces(ctx) },
	}
	fetch.Each(first, func(task func()) { task() })
	// What follows depends on the namespace of the manager, and on what is named elsewhere.
	second := []func(){
		func() { g.rights(ctx) }, func() { g.services(ctx) }, func() { g.certificate(ctx) }, func() { g.meshSecrets(ctx) }, func() { g.references(ctx) },
	}
	fetch.Each(second, func(task func()) { task() })
	return g.facts, nil
}

// put writes facts.
func (g *gatherer) put(write func(*Facts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	write(g.facts)
}

// missing takes note of what could not be read. That something is not there is no gap.
func (g *gatherer) missing(t topic, verb string, kind served.Kind, namespace, name string, err error) bool {
	if err == nil {
		return false
	}
	if isNotFound(err) {
		return true
	}
	resource := kind.Resource
	if kind.Group != "" {
		resource += "." + kind.Group
	}
	gap := Gap{What: strings.TrimSpace(resource + " " + name), Reason: firstLine(err)}
	if apierrors.IsForbidden(err) {
		where := ""
		if namespace != "" {
			where = " in namespace " + namespace
		}
		gap = Gap{What: gap.What, Right: verb + " " + gap.What + where}
		if name != "" {
			gap.Of, gap.Name = verb+" "+resource+where, name
		}
	}
	g.put(func(f *Facts) {
		if !slices.Contains(f.gaps[t], gap) {
			f.gaps[t] = append(f.gaps[t], gap)
		}
	})
	return true
}

func isNotFound(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// get reads one object; nil when it is not there or cannot be read.
func (g *gatherer) get(ctx context.Context, t topic, group, kind, namespace, name string) *unstructured.Unstructured {
	k, ok := g.set.Kind(group, kind)
	if !ok {
		return nil
	}
	u, err := g.reader.Get(ctx, k, namespace, name)
	if g.missing(t, "get", k, namespace, name, err) {
		return nil
	}
	return u
}

// list reads the objects of a kind; what cannot be read has none.
func (g *gatherer) list(ctx context.Context, t topic, group, kind, namespace string, options metav1.ListOptions) []unstructured.Unstructured {
	k, ok := g.set.Kind(group, kind)
	if !ok {
		return nil
	}
	all, err := g.reader.List(ctx, k, namespace, options)
	if g.missing(t, "list", k, namespace, "", err) {
		return nil
	}
	return all
}

// decode reads an object into its type. What has another shape is an object without that content.
func decode(u *unstructured.Unstructured, into any) bool {
	return u != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil
}

func (g *gatherer) manager(ctx context.Context, o *cli.Options, cluster *cli.Cluster) {
	m := installed.Find(ctx, g.reader, g.set, o.ManagerNamespace, cluster.Namespace, &g.Gaps)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.facts.Manager = m
	hidden, failed := g.Split()
	if len(hidden) > 0 {
		g.facts.gaps[topicManager] = append(g.facts.gaps[topicManager],
			Gap{What: strings.Join(hidden, ", "), Right: "read them in all namespaces, or name the manager's with --manager-namespace"})
	}
	for _, line := range failed {
		g.facts.gaps[topicManager] = append(g.facts.gaps[topicManager], Gap{What: "the manager", Reason: line})
	}
}

func (g *gatherer) crds(ctx context.Context) {
	wanted := slices.Clone(neighbours)
	for name := range g.ships.CRDs {
		wanted = append(wanted, name)
	}
	fetch.Each(wanted, func(name string) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if !decode(g.get(ctx, topicCRDs, "apiextensions.k8s.io", "CustomResourceDefinition", "", name), crd) {
			return
		}
		g.put(func(f *Facts) { f.CRDs[name] = crd })
	})
}

// resources are those of our components. A namespace given to the command does not limit them: what is wrong is wrong for all.
func (g *gatherer) resources(ctx context.Context) {
	type task struct {
		component string
		kind      ours.Kind
	}
	var tasks []task
	for _, c := range ours.Components() {
		for _, k := range c.Kinds {
			tasks = append(tasks, task{c.Name, k})
		}
	}
	fetch.Each(tasks, func(t task) {
		for _, u := range g.list(ctx, topicResources, t.kind.Group, t.kind.Kind, "", metav1.ListOptions{}) {
			if t.kind.Ours != nil && !t.kind.Ours(&u) {
				continue
			}
			verdict := health.Of(&u)
			g.mu.Lock()
			g.facts.Needed = append(g.facts.Needed, needs(&u)...)
			if t.component == "modelmesh" && connected(&u) {
				g.facts.Connected[u.GetNamespace()]++
			}
			g.facts.Resources = append(g.facts.Resources, Resource{t.component, u.GetKind(), u.GetNamespace(), u.GetName(), verdict})
			g.mu.Unlock()
		}
	})
}

// connected tells whether a model lies in a storage that an entry of a Secret describes, as the manager reads it. A model that the
// manager cannot read has none; its status says why.
func connected(u *unstructured.Unstructured) bool {
	var m modelmesh.Model
	switch p, s := (&servingv1alpha1.Predictor{}), (&servingv1beta1.InferenceService{}); u.GetKind() {
	case "Predictor":
		if !decode(u, p) {
			return false
		}
		m = modelmesh.FromPredictor(p)
	case "InferenceService":
		if !decode(u, s) {
			return false
		}
		m, _, _ = modelmesh.FromInferenceService(s)
	}
	key := m.StorageKey()
	return key != nil && *key != ""
}

// serviceCA looks for what signs certificates of Services on OpenShift.
func (g *gatherer) serviceCA(ctx context.Context) {
	if _, is := g.set.Kind("config.openshift.io", "Ingress"); !is {
		return
	}
	u := g.get(ctx, topicOpenShift, "apps", "Deployment", "openshift-service-ca", "service-ca")
	if u == nil && len(g.gapsOf(topicOpenShift)) > 0 {
		return
	}
	runs := u != nil && health.Of(u).State == health.Healthy
	g.put(func(f *Facts) { f.ServiceCA = &runs })
}

func (g *gatherer) gapsOf(t topic) []Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.facts.gaps[t]
}

// certificate reads the public part of the manager's own certificate.
func (g *gatherer) certificate(ctx context.Context) {
	namespace := g.facts.namespace()
	if namespace == "" {
		return
	}
	s := &corev1.Secret{}
	if !decode(g.get(ctx, topicSecret, "", "Secret", namespace, certificateSecret), s) {
		return
	}
	public := &corev1.Secret{ObjectMeta: s.ObjectMeta, Data: map[string][]byte{}}
	for _, key := range []string{corev1.TLSCertKey, corev1.ServiceAccountRootCAKey} {
		public.Data[key] = s.Data[key]
	}
	g.put(func(f *Facts) { f.Certificate = public })
}
