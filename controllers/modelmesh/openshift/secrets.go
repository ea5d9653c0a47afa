package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

const (
	certificateLifetime  = 365 * 24 * time.Hour
	certificateAuthority = "odh-platform-operator-modelmesh-ca"
	// none stands for the version of what does not exist.
	none = "none"
)

// gatherStorage reads the data connections of a namespace when one of them has changed, or the Secret with the entries has. Nothing of
// their content is remembered.
func (r *namespaces) gatherStorage(ctx context.Context, in *Inputs, known *remembered) ([]place, error) {
	heads, err := r.connectionHeads(ctx, in)
	if err != nil || len(heads) == 0 {
		return nil, err
	}
	bundle, err := r.headOf(ctx, place{configMapKind, types.NamespacedName{Namespace: in.Namespace, Name: BundleConfigMap}})
	if err != nil {
		return nil, err
	}
	target := place{secretKind, types.NamespacedName{Namespace: in.Namespace, Name: in.Settings.StorageSecretName}}
	held, err := r.headOf(ctx, target)
	if err != nil {
		return nil, err
	}
	versions, entries := versionsOf(append(heads, bundle)), none
	if held != nil {
		entries = held.ResourceVersion
	}
	switch {
	case versions == known.gathered && entries == known.entries && held == nil:
		return nil, nil // none of them says where models are
	case versions == known.gathered && entries == known.entries:
		return []place{target}, nil
	}
	if taken, err := r.taken(ctx, held, known); err != nil || taken {
		known.gathered, known.entries = versions, entries
		return []place{target}, err
	}
	if in.Storage, err = r.readConnections(ctx, in.Namespace, heads, bundle != nil); err != nil {
		return nil, err
	}
	known.gathered, known.entries = versions, entries
	if held == nil && in.Storage != nil {
		known.entries = "" // what is written is read once
	}
	return nil, nil
}

// taken tells whether the Secret with the storage entries is that of a user, which an Event reports: its entries are not touched.
func (r *namespaces) taken(ctx context.Context, held *metav1.PartialObjectMetadata, known *remembered) (bool, error) {
	if held == nil || ours(held) {
		known.news(topicStorage, "")
		return false, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(secretKind)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(held), live)
	if apierrors.IsNotFound(err) || err == nil && (ours(live) || isStorage(live)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", held.Name, err)
	}
	text := fmt.Sprintf("the data connections of namespace %s are not added to Secret %s, which another client made: add them there, "+
		"or label it %s=%s to have it kept by the operator", held.Namespace, held.Name, LabelManaged, yes)
	if known.news(topicStorage, text) {
		r.warn(held, text)
	}
	return true, nil
}

// connectionHeads are the metadata of the data connections, by name.
func (r *namespaces) connectionHeads(ctx context.Context, in *Inputs) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(secretKind.GroupVersion().WithKind("SecretList"))
	if err := r.connections.List(ctx, list, client.InNamespace(in.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing data connections: %w", err)
	}
	var heads []*metav1.PartialObjectMetadata
	for i := range list.Items {
		if list.Items[i].Name != in.Settings.StorageSecretName {
			heads = append(heads, &list.Items[i])
		}
	}
	slices.SortFunc(heads, func(a, b *metav1.PartialObjectMetadata) int { return cmp.Compare(a.Name, b.Name) })
	return heads, nil
}

// readConnections makes the storage entries of what the API server has. What is gone by now is left out: its event comes.
func (r *namespaces) readConnections(ctx context.Context, namespace string, heads []*metav1.PartialObjectMetadata, withBundle bool) (map[string][]byte, error) {
	var bundle corev1.ConfigMap
	if withBundle {
		err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: BundleConfigMap}, &bundle)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the CAs of the platform: %w", err)
		}
	}
	var connections []corev1.Secret
	for _, head := range heads {
		var c corev1.Secret
		err := r.live.Get(ctx, client.ObjectKeyFromObject(head), &c)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading data connection %s: %w", head.Name, err)
		}
		connections = append(connections, c)
	}
	return storage(connections, bundle.Data[BundleKey])
}

// versionsOf changes whenever one of the objects does, nil for one that is not there.
func versionsOf(heads []*metav1.PartialObjectMetadata) string {
	var b strings.Builder
	for _, h := range heads {
		if h != nil {
			fmt.Fprintf(&b, "%s/%s/%s;", h.Name, h.UID, h.ResourceVersion)
		}
	}
	return b.String()
}

// certify issues the sidecar's certificate where nothing else does, and renews what it issued; the proxy takes a renewed one up by
// itself. A Secret that another client made is not written. Gateways get to know the CA of what was issued.
func (r *namespaces) certify(ctx context.Context, in *Inputs, known *remembered) ([]place, error) {
	kept, err := r.issue(ctx, in, known)
	if known.renewal.IsZero() {
		known.authority = nil
	}
	if served := r.Served(); served.Has(capability.BackendTLSPolicy) && r.exposure.publisher(served) == capability.HTTPRoute {
		in.Authority = known.authority
	}
	return kept, err
}

func (r *namespaces) issue(ctx context.Context, in *Inputs, known *remembered) ([]place, error) {
	if !in.Proxy.NeedsCertificate() {
		known.renewal = time.Time{}
		return nil, nil
	}
	target := place{secretKind, types.NamespacedName{Namespace: in.Namespace, Name: authproxy.TLSSecret}}
	held, err := r.headOf(ctx, target)
	if err != nil {
		return nil, err
	}
	switch {
	case held != nil && !r.applier.Made(held):
		known.renewal = time.Time{}
		return nil, nil
	case held != nil && ours(held) && held.ResourceVersion == known.certificate && r.clock.Now().Before(known.renewal):
		return []place{target}, nil
	}
	live := &corev1.Secret{}
	err = r.live.Get(ctx, target.NamespacedName, live)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", target.NamespacedName, err)
	}
	if err == nil && (!r.applier.Made(live) || live.DeletionTimestamp != nil) {
		return []place{target}, nil // the cache is behind; its event brings us back
	}
	serving, err := certs.KeepServing(live.Data, certs.ServingOptions{
		Authority: certificateAuthority, DNSNames: serviceNames(in), Lifetime: certificateLifetime,
	}, r.clock.Now())
	if err != nil {
		return nil, fmt.Errorf("issuing the serving certificate: %w", err)
	}
	known.renewal, known.certificate, known.authority = serving.Next, live.ResourceVersion, serving.Data[corev1.ServiceAccountRootCAKey]
	if serving.Why != "" || !ours(live) { // it has lost its labels
		in.Certificate, known.certificate = serving.Data, "" // what is written has another version, which is read once
		return nil, nil
	}
	return []place{target}, nil
}

func serviceNames(in *Inputs) []string {
	service := in.Settings.ServiceName
	local := service + "." + in.Namespace
	return []string{local + ".svc", local + ".svc.cluster.local", local, service, "localhost"}
}

// untilRenewal is when the certificate is due; 0 when there is none.
func (r *namespaces) untilRenewal(known *remembered) time.Duration {
	if known.renewal.IsZero() {
		return 0
	}
	return max(known.renewal.Sub(r.clock.Now()), lookAgain)
}
