package modelcatalog

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// sideCaches hold what the cache of the manager does not, few objects each.
type extraCaches struct {
	// secrets hold the metadata of the three Secrets of the catalog, by their names: it may not see any other.
	secrets map[string]cache.Cache
	// labelled holds the ConfigMaps of users with sources.
	labelledConfigMaps cache.Cache
	apiReader          client.Reader

	mu              sync.Mutex
	contentProblems map[string]string // what is wrong with the content of a labelled ConfigMap, by its uid and version
}

func newExtraCaches(mgr ctrl.Manager, namespace string) (*extraCaches, error) {
	s := &extraCaches{secrets: map[string]cache.Cache{}, apiReader: mgr.GetAPIReader()}
	limit := func(by cache.ByObject) cache.ByObject {
		if namespace != "" {
			by.Namespaces = map[string]cache.Config{namespace: {}}
		}
		return by
	}
	for _, name := range []string{resources.DatabaseName, resources.CertificateSecret, resources.DatabaseCertificate} {
		by := limit(cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)})
		c, err := component.NewSelectorCache(mgr, capability.MetadataOf(registry.Secret), by, apply.Transform(FieldOwner))
		if err != nil {
			return nil, err
		}
		s.secrets[name] = c
	}
	by := limit(cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{resources.SourceLabel: resources.SourceLabelValue})})
	var err error
	s.labelledConfigMaps, err = component.NewSelectorCache(mgr, &corev1.ConfigMap{}, by, trimContent)
	return s, err
}

// routed is a client that finds the Secrets in their caches.
func (s *extraCaches) delegatingClient(main client.Client) client.Client {
	return &component.DelegatingClient{Client: main, Route: func(key client.ObjectKey, object client.Object) client.Reader {
		if _, metadata := object.(*metav1.PartialObjectMetadata); metadata && object.GetObjectKind().GroupVersionKind() == registry.Secret {
			if c, held := s.secrets[key.Name]; held {
				return c
			}
		}
		return nil
	}}
}

// sources wake a controller with whatever happens to what the caches hold.
func (s *extraCaches) eventSources(h handler.EventHandler) []source.Source {
	all := []source.Source{source.Kind(s.labelledConfigMaps, client.Object(&corev1.ConfigMap{}), h)}
	for _, c := range s.secrets {
		all = append(all, source.Kind(c, client.Object(capability.MetadataOf(registry.Secret)), h))
	}
	return all
}

// authName is the name of the one Auth.
const authName = "auth"

// adminGroups are the groups of administrators in an Auth. A missing object, a missing field and a field of another type name
// none, and blank names are left out.
func adminGroups(auth *unstructured.Unstructured) []string {
	if auth == nil {
		return nil
	}
	groups, _, err := unstructured.NestedStringSlice(auth.Object, "spec", "adminGroups")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(groups, func(name string) bool { return name == "" })
}

// newAdmins follows the groups of administrators while Auth is served.
func newAdminGroupsWatcher(ctx context.Context, dyn dynamic.Interface, served *capability.Watcher, clk clock.Clock, log logr.Logger) *singleton.Value[[]string] {
	resource := capability.PlatformAuth.GroupVersion().WithResource("auths")
	groups := singleton.NewValue(singleton.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: authName, Clock: clk, Log: log.WithName("auth"),
	}, adminGroups)
	served.Follow(ctx, func(s capability.Set) { groups.SetServed(s.Has(capability.PlatformAuth)) })
	return groups
}

// clusterProxyName is the name of the one proxy configuration that an OpenShift cluster has.
const clusterProxyName = "cluster"

// newClusterProxy follows the proxy of the cluster. One that may not be read is none: the server then runs as it would elsewhere. One that
// was read stays in force, or the loss of a right would replace the pod.
func newClusterProxyWatcher(dyn dynamic.Interface, clk clock.Clock, log logr.Logger) *singleton.Value[resources.EgressProxy] {
	resource := capability.OpenShiftProxy.GroupVersion().WithResource("proxies")
	var proxy *singleton.Value[resources.EgressProxy]
	proxy = singleton.NewValue(singleton.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: clusterProxyName, Clock: clk, Log: log.WithName("proxy"),
		OnUnavailable: func() {
			if _, known := proxy.Current(); !known {
				proxy.OnUpdate(nil)
			}
		},
	}, resources.ClusterProxy)
	return proxy
}
