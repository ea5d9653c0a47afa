package runtimes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// front brings about the Service of a namespace, what watches it, and the manager's own connections to what stands behind it.
func (s *server) front(ctx context.Context, f *facts) error {
	var errs []error
	if going, err := s.remakeService(ctx, f); err != nil || going {
		return err // it comes back with the event of its end
	}
	inputs := s.inputs(f)
	desired := apply.Desired{{Config: resources.BuildService(inputs), Adopts: adoptsOriginals}}
	errs = append(errs, s.applier.Apply(ctx, f.owner, desired), s.removeServices(ctx, f), s.connect(f), s.monitor(ctx, f, inputs))
	return errors.Join(errs...)
}

func (s *server) inputs(f *facts) resources.NamespaceInputs {
	return resources.NamespaceInputs{
		Namespace: f.namespace, Settings: f.settings, Proxy: s.guard(f), TLS: f.tls, OpenShift: s.Served().OpenShift(), Home: s.Namespaces.Own(),
	}
}

// remakeService deletes the Service when its kind of address has to change, which no update can do. It tells whether the Service
// is on its way out. The Service is read once, and again when the setting changes.
func (s *server) remakeService(ctx context.Context, f *facts) (going bool, err error) {
	if headless, seen := s.headless.Get(f.namespace); seen && headless == f.settings.HeadlessService {
		return false, nil
	}
	live := &corev1.Service{}
	err = s.live.Get(ctx, inside(f.namespace, f.settings.ServiceName), live)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading the Service: %w", err)
	}
	ours := err == nil && (originals(live) || wrote(live))
	if ours && (live.Spec.ClusterIP == corev1.ClusterIPNone) != f.settings.HeadlessService {
		return true, s.applier.Remove(ctx, f.owner.GetUID(), live)
	}
	s.headless.Set(f.namespace, f.settings.HeadlessService)
	return false, nil
}

// removeServices deletes Services of ours that have another name than the settings say now.
func (s *server) removeServices(ctx context.Context, f *facts) error {
	return s.removeAll(ctx, f.namespace, serviceKind, func(o metav1.Object) bool {
		return ofMesh(o) && o.GetName() != f.settings.ServiceName
	})
}

// connect lets the manager talk with the namespace and hear of it.
func (s *server) connect(f *facts) error {
	target := meshclient.Target{
		Service: f.settings.ServiceName, Port: f.settings.ServicePort, Endpoint: f.settings.ModelMeshEndpoint, TLS: f.pair,
	}
	if f.settings.RESTProxy.Enabled {
		target.RESTPort = f.settings.RESTProxy.Port
	}
	s.stream.Ensure(f.namespace, f.settings.ServiceName)
	problem := strings.Join(f.tlsNotes, "; ")
	var err error
	if f.settings.TLS.Enabled() && f.pair == nil {
		f.tlsNotes = append(f.tlsNotes, fmt.Sprintf("TLS secret '%s' can be used neither from namespace %s nor from %s: models cannot be managed; create it there",
			f.settings.TLS.SecretName, f.namespace, s.Namespaces.Own()))
		problem = strings.Join(f.tlsNotes, "; ")
	} else if err = s.pool.Ensure(f.namespace, target); err != nil {
		err = fmt.Errorf("connecting to the runtimes of namespace %s: %w", f.namespace, err)
	}
	s.refuseAll(f, aboutClient, problem)
	return err
}

// monitor brings about the ServiceMonitor, which goes with the Service.
func (s *server) monitor(ctx context.Context, f *facts, inputs resources.NamespaceInputs) error {
	if !s.Served().Has(capability.ServiceMonitor) {
		return nil
	}
	if !resources.Monitored(f.settings) {
		return s.removeAll(ctx, f.namespace, capability.ServiceMonitor, func(o metav1.Object) bool { return o.GetName() == resources.MonitorName })
	}
	service := modelmesh.Metadata(serviceKind)
	err := s.Cached.Get(ctx, inside(f.namespace, f.settings.ServiceName), service)
	if apierrors.IsNotFound(err) {
		return nil // its event brings us back
	}
	if err != nil {
		return fmt.Errorf("reading the Service from the cache: %w", err)
	}
	return s.applier.Apply(ctx, service, apply.Desired{{Config: resources.BuildServiceMonitor(inputs), Adopts: adoptsOriginals}})
}

// removeAll deletes what is ours of a kind in a namespace, as far as it is unwanted.
func (s *server) removeAll(ctx context.Context, namespace string, kind schema.GroupVersionKind, unwanted func(metav1.Object) bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := s.Cached.List(ctx, list, client.InNamespace(namespace), ours(), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing our objects of kind %s: %w", kind.Kind, err)
	}
	var errs []error
	for i := range list.Items {
		o := list.Items[i].DeepCopy()
		if !unwanted(o) {
			continue
		}
		o.SetGroupVersionKind(kind)
		errs = append(errs, s.applier.Remove(ctx, ownerOf(o), o))
	}
	return errors.Join(errs...)
}
