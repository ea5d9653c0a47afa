package modelcatalog

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// extraCaches holds objects of users that the cache of the manager does not contain.
type extraCaches struct {
	// secrets holds the metadata of the three Secrets of the catalog, by name: RBAC allows no others.
	secrets map[string]cache.Cache
	// labelledConfigMaps holds the ConfigMaps of users with sources.
	labelledConfigMaps cache.Cache
	apiReader          client.Reader

	mu              sync.Mutex
	contentProblems map[string]string // by UID and resourceVersion of a labelled ConfigMap
}

func newExtraCaches(mgr ctrl.Manager, namespace string) (*extraCaches, error) {
	secrets, err := servers.NamedCaches(mgr, namespace, capability.MetadataOf(servers.Secret), apply.Transform(FieldOwner),
		resources.DatabaseName, resources.CertificateSecret, resources.DatabaseCertificate)
	if err != nil {
		return nil, err
	}
	options := cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{resources.SourceLabel: resources.SourceLabelValue})}
	if namespace != "" {
		options.Namespaces = map[string]cache.Config{namespace: {}}
	}
	labelled, err := component.NewSelectorCache(mgr, &corev1.ConfigMap{}, options, trimContent)
	return &extraCaches{secrets: secrets, labelledConfigMaps: labelled, apiReader: mgr.GetAPIReader()}, err
}

// delegatingClient returns a client that reads the Secrets from their caches.
func (s *extraCaches) delegatingClient(main client.Client) client.Client {
	return &component.DelegatingClient{Client: main, Route: func(key client.ObjectKey, object client.Object) client.Reader {
		if _, metadata := object.(*metav1.PartialObjectMetadata); metadata && object.GetObjectKind().GroupVersionKind() == servers.Secret {
			if c, found := s.secrets[key.Name]; found {
				return c
			}
		}
		return nil
	}}
}

// eventSources returns sources of the events of all caches.
func (s *extraCaches) eventSources(h handler.EventHandler) []source.Source {
	all := []source.Source{source.Kind(s.labelledConfigMaps, client.Object(&corev1.ConfigMap{}), h)}
	for _, c := range s.secrets {
		all = append(all, source.Kind(c, client.Object(capability.MetadataOf(servers.Secret)), h))
	}
	return all
}

// authName is the name of the Auth singleton.
const authName = "auth"

// adminGroups returns the non-empty groups of administrators in an Auth, none for a missing object or field or another type.
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

// newAdminGroupsWatcher watches the groups of administrators while Auth is served.
func newAdminGroupsWatcher(ctx context.Context, dyn dynamic.Interface, served *capability.Watcher, clk clock.Clock, log logr.Logger) *singleton.Value[[]string] {
	resource := capability.PlatformAuth.GroupVersion().WithResource("auths")
	groups := singleton.NewValue(singleton.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: authName, Clock: clk, Log: log.WithName("auth"),
	}, singleton.Unknown, adminGroups)
	served.OnChange(ctx, func(s capability.Set) { groups.SetServed(s.Has(capability.PlatformAuth)) })
	return groups
}

// clusterProxyName is the name of the Proxy singleton of OpenShift.
const clusterProxyName = "cluster"

// newClusterProxyWatcher watches the Proxy of the cluster. Without permission it has no settings, as on other clusters. If the permission is
// lost later, the last value is kept, because a change would replace the pod.
func newClusterProxyWatcher(dyn dynamic.Interface, clk clock.Clock, log logr.Logger) *singleton.Value[resources.EgressProxy] {
	resource := capability.OpenShiftProxy.GroupVersion().WithResource("proxies")
	return singleton.NewValue(singleton.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: clusterProxyName, Clock: clk, Log: log.WithName("proxy"),
	}, singleton.AbsentUnlessKnown, resources.ClusterProxy)
}
