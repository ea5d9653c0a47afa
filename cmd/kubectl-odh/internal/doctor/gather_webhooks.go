package doctor

import (
	"context"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// maxMesh is how many namespaces of ModelMesh are looked at one by one.
const maxMesh = 50

// webhooks reads all configurations and keeps what is asked about our kinds. Both kinds of configuration have the fields that matter in
// the same places.
func (g *gatherer) webhooks(ctx context.Context) {
	var all []Webhook
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, u := range g.list(ctx, topicWebhooks, admissionregistrationv1.GroupName, kind, "", metav1.ListOptions{}) {
			c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if !decode(&u, c) {
				continue
			}
			for _, w := range c.Webhooks {
				policy := ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail)
				all = append(all, Webhook{kind, c.Name, w.Name, policy, w.Rules, w.ClientConfig.CABundle, w.ClientConfig.Service})
			}
		}
	}
	g.put(func(f *Facts) { f.Webhooks = slices.DeleteFunc(all, func(w Webhook) bool { return !g.aboutUs(w) }) })
}

// aboutUs tells whether a webhook is one of ours or is called for one of our kinds by name.
func (g *gatherer) aboutUs(w Webhook) bool {
	if g.ships.Configurations[w.Kind+" "+w.Configuration] != "" {
		return true
	}
	groups := map[string]bool{}
	for _, c := range ours.Components() {
		for _, k := range c.Kinds {
			groups[k.Group] = true
		}
	}
	return slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(group string) bool { return groups[group] })
	})
}

// services looks at what webhooks and conversions are sent to.
func (g *gatherer) services(ctx context.Context) {
	wanted := map[types.NamespacedName]bool{}
	for _, w := range g.facts.Webhooks {
		if w.Service != nil {
			wanted[types.NamespacedName{Namespace: w.Service.Namespace, Name: w.Service.Name}] = true
		}
	}
	for _, crd := range g.facts.CRDs {
		if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil {
			s := c.Webhook.ClientConfig.Service
			wanted[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = true
		}
	}
	fetch.Each(slices.Collect(maps.Keys(wanted)), func(key types.NamespacedName) {
		service := g.get(ctx, topicServices, "", "Service", key.Namespace, key.Name)
		if service == nil {
			return
		}
		before := len(g.gapsOf(topicServices))
		slices := g.list(ctx, topicServices, discoveryv1.GroupName, "EndpointSlice", key.Namespace,
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + key.Name})
		ready := 0
		for i := range slices {
			ready += readyIn(&slices[i])
		}
		elsewhere, _, _ := unstructured.NestedString(service.Object, "spec", "externalName") // behind which nobody can look
		if elsewhere != "" || len(g.gapsOf(topicServices)) > before {
			ready = -1
		}
		g.put(func(f *Facts) { f.Services[key] = ready })
	})
}

// readyIn counts the addresses of a slice that take requests.
func readyIn(u *unstructured.Unstructured) int {
	s := &discoveryv1.EndpointSlice{}
	if !decode(u, s) {
		return 0
	}
	n := 0
	for _, e := range s.Endpoints {
		if e.Conditions.Ready == nil || *e.Conditions.Ready {
			n += len(e.Addresses)
		}
	}
	return n
}

// meshNamespaces are those that ask for ModelMesh.
func (g *gatherer) meshNamespaces(ctx context.Context) {
	var found []MeshNamespace
	for _, u := range g.list(ctx, topicMesh, "", "Namespace", "", metav1.ListOptions{LabelSelector: modelmesh.LabelEnabled + "=true"}) {
		found = append(found, MeshNamespace{Name: u.GetName()})
	}
	g.put(func(f *Facts) { f.MeshNamespaces = found })
}

// meshSecrets looks at what namespaces of ModelMesh need. Of Secrets only the metadata is read.
func (g *gatherer) meshSecrets(ctx context.Context) {
	secrets, ok := g.set.Kind("", "Secret")
	manager := g.facts.Manager.Settings
	if !ok || !manager.Known || !manager.Config.Enabled("modelmesh") {
		return
	}
	exists := func(namespace, name string) bool {
		u, err := g.reader.Metadata.Resource(secrets.GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return !g.missing(topicMeshSecret, "get", secrets, namespace, name, err) && u != nil
	}
	c := manager.Config.ModelMesh
	etcd, storage := g.meshNames(ctx, c)
	g.facts.EtcdName, g.facts.StorageName, g.facts.EtcdSecret = etcd, storage, exists(c.Namespace, etcd)
	g.ownNamespace(ctx, c)
	list := g.facts.MeshNamespaces[:min(len(g.facts.MeshNamespaces), maxMesh)]
	fetch.Each(slices.Collect(indexes(len(list))), func(i int) {
		n := &list[i] // each task has its own
		n.Service = len(g.list(ctx, topicMesh, "", "Service", n.Name, metav1.ListOptions{LabelSelector: "modelmesh-service"})) > 0
		n.Storage = exists(n.Name, storage)
	})
}

// ownNamespace puts the namespace of the manager first among those of ModelMesh, where it is served though it does not ask for it: without
// any label.
func (g *gatherer) ownNamespace(ctx context.Context, c config.ModelMesh) {
	u := g.get(ctx, topicMesh, "", "Namespace", "", c.Namespace)
	if u != nil && u.GetLabels()[modelmesh.LabelEnabled] != "" && !c.NamespaceScope {
		return
	}
	if slices.ContainsFunc(g.facts.MeshNamespaces, func(n MeshNamespace) bool { return n.Name == c.Namespace }) {
		return
	}
	g.facts.MeshNamespaces = append([]MeshNamespace{{Name: c.Namespace, Own: true}}, g.facts.MeshNamespaces...)
}

// meshNames are the names of the Secrets for etcd and for storage, which administrators may change. Where what they say has a
// mistake, the usual names count.
func (g *gatherer) meshNames(ctx context.Context, c config.ModelMesh) (etcd, storage string) {
	configMap := func(name string) *corev1.ConfigMap {
		found := &corev1.ConfigMap{}
		if !decode(g.get(ctx, topicMeshSecret, "", "ConfigMap", c.Namespace, name), found) {
			return nil
		}
		return found
	}
	settings, _, err := meshsettings.Resolve(c, meshsettings.Documents{
		Defaults: configMap(meshsettings.DefaultsName), Admin: configMap(meshsettings.ConfigMapName),
	})
	if err != nil {
		return c.EtcdSecretName, meshsettings.DefaultStorageSecret
	}
	return settings.EtcdSecretName, settings.StorageSecretName
}

func indexes(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
