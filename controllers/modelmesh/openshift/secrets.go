package openshift

import (
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

const (
	certificateLifetime  = 365 * 24 * time.Hour
	certificateAuthority = "odh-platform-operator-modelmesh-ca"
)

// gatherStorage reads the data connections of a namespace when one of them has changed, or the Secret with the entries has. Nothing of
// their content is remembered.
func (r *namespaceReconciler) collectStorage(ctx context.Context, in *Inputs, known *namespaceState) ([]objectRef, error) {
	heads, err := r.listConnections(ctx, in)
	if err != nil || len(heads) == 0 {
		return nil, err
	}
	bundle, err := r.getMetadata(ctx, objectRef{configMapKind, types.NamespacedName{Namespace: in.Namespace, Name: BundleConfigMap}})
	if err != nil {
		return nil, err
	}
	target := objectRef{secretKind, types.NamespacedName{Namespace: in.Namespace, Name: in.Settings.StorageSecretName}}
	held, err := r.getMetadata(ctx, target)
	if err != nil {
		return nil, err
	}
	kept := []objectRef{target}
	if held == nil {
		kept = nil // none of them says where models are
	}
	versions := joinVersions(append(heads, bundle, held))
	if versions == known.storageVersions {
		return kept, nil
	}
	if taken, err := r.isStorageSecretForeign(ctx, held, known); err != nil || taken {
		known.storageVersions = versions
		return kept, err
	}
	if in.StorageData, err = r.readStorageData(ctx, in.Namespace, heads, bundle != nil); err != nil {
		return nil, err
	}
	known.storageVersions = versions
	if held == nil && in.StorageData != nil {
		known.storageVersions = "" // what is written is read once
	}
	return nil, nil
}

// taken tells whether the Secret with the storage entries is that of a user, which an Event reports: its entries are not touched.
func (r *namespaceReconciler) isStorageSecretForeign(ctx context.Context, held *metav1.PartialObjectMetadata, known *namespaceState) (bool, error) {
	if held == nil || isManaged(held) {
		replaceProblem(&known.lastStorageProblem, "")
		return false, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(secretKind)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(held), live)
	if apierrors.IsNotFound(err) || err == nil && (isManaged(live) || isLegacyStorageSecret(live)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", held.Name, err)
	}
	text := fmt.Sprintf("the data connections of namespace %s are not added to Secret %s, which another client made: add them there, "+
		"or label it %s=%s to have it kept by the operator", held.Namespace, held.Name, LabelManaged, valueTrue)
	if replaceProblem(&known.lastStorageProblem, text) {
		r.recordWarning(held, text)
	}
	return true, nil
}

// connectionHeads are the metadata of the data connections, by name.
func (r *namespaceReconciler) listConnections(ctx context.Context, in *Inputs) ([]*metav1.PartialObjectMetadata, error) {
	all, err := modelmesh.Heads(ctx, r.connections, secretKind, client.InNamespace(in.Namespace))
	var heads []*metav1.PartialObjectMetadata
	for i := range all {
		if all[i].Name != in.Settings.StorageSecretName {
			heads = append(heads, &all[i])
		}
	}
	slices.SortFunc(heads, func(a, b *metav1.PartialObjectMetadata) int { return cmp.Compare(a.Name, b.Name) })
	return heads, err
}

// readConnections makes the storage entries of what the API server has. What is gone by now is left out: its event comes.
func (r *namespaceReconciler) readStorageData(ctx context.Context, namespace string, heads []*metav1.PartialObjectMetadata, withBundle bool) (map[string][]byte, error) {
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
	return buildStorageData(connections, bundle.Data[BundleKey])
}

// versionsOf changes whenever one of the objects does, nil for one that is not there.
func joinVersions(heads []*metav1.PartialObjectMetadata) string {
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
func (r *namespaceReconciler) collectCertificate(ctx context.Context, in *Inputs, known *namespaceState) ([]objectRef, error) {
	kept, err := r.ensureCertificate(ctx, in, known)
	if known.renewalTime.IsZero() {
		known.trust = certs.Trust{}
	}
	if served := r.Served(); served.Has(capability.BackendTLSPolicy) && r.exposure.routeKind(served) == capability.HTTPRoute {
		in.CABundle = known.trust.Bundle(r.clock.Now())
	}
	return kept, err
}

func (r *namespaceReconciler) ensureCertificate(ctx context.Context, in *Inputs, known *namespaceState) ([]objectRef, error) {
	if !in.Proxy.NeedsCertificate() {
		known.renewalTime = time.Time{}
		return nil, nil
	}
	target := objectRef{secretKind, types.NamespacedName{Namespace: in.Namespace, Name: authproxy.TLSSecret}}
	held, err := r.getMetadata(ctx, target)
	if err != nil {
		return nil, err
	}
	switch {
	case held != nil && !r.applier.IsManaged(held):
		known.renewalTime = time.Time{}
		return nil, nil
	case held != nil && isManaged(held) && held.ResourceVersion == known.certificateVersion && r.clock.Now().Before(known.renewalTime):
		return []objectRef{target}, nil
	}
	live := &corev1.Secret{}
	err = r.live.Get(ctx, target.NamespacedName, live)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", target.NamespacedName, err)
	}
	if err == nil && (!r.applier.IsManaged(live) || live.DeletionTimestamp != nil) {
		return []objectRef{target}, nil // the cache is behind; its event brings us back
	}
	serving, err := certs.KeepServing(live.Data, certs.ServingOptions{
		Authority: certificateAuthority, DNSNames: certificateDNSNames(in), Lifetime: certificateLifetime,
	}, r.clock.Now())
	if err != nil {
		return nil, fmt.Errorf("issuing the serving certificate: %w", err)
	}
	known.renewalTime, known.certificateVersion = serving.Next, live.ResourceVersion
	known.trust.Follow(serving.Data[corev1.ServiceAccountRootCAKey], r.clock.Now())
	if serving.Why != "" || !isManaged(live) { // it has lost its labels
		in.CertificateData, known.certificateVersion = serving.Data, "" // what is written has another version, which is read once
		return nil, nil
	}
	return []objectRef{target}, nil
}

func certificateDNSNames(in *Inputs) []string {
	service := in.Settings.ServiceName
	local := service + "." + in.Namespace
	return []string{local + ".svc", local + ".svc.cluster.local", local, service, "localhost"}
}

// untilRenewal is when the certificate, or trust in it, is due; 0 when there is none.
func (r *namespaceReconciler) renewalDelay(known *namespaceState) time.Duration {
	if known.renewalTime.IsZero() {
		return 0
	}
	return max(known.trust.Sooner(known.renewalTime.Sub(r.clock.Now()), r.clock.Now()), pollInterval)
}

// fields of a data connection, and the members of a storage entry that they become.
var connectionFields = []struct {
	key     string
	members []string
}{
	{"AWS_ACCESS_KEY_ID", []string{"access_key_id"}},
	{"AWS_SECRET_ACCESS_KEY", []string{"secret_access_key"}},
	{"AWS_S3_ENDPOINT", []string{keyEndpoint}},
	{"AWS_S3_BUCKET", []string{"bucket", "default_bucket"}},
	{"AWS_DEFAULT_REGION", []string{"region"}},
}

const (
	keyType     = "type"
	keyEndpoint = "endpoint_url"
	typeS3      = "s3"
)

// storage gathers the entries of data connections, one under the name of each. The bundle are the CAs of the platform. It is nil
// when there is none.
func buildStorageData(connections []corev1.Secret, bundle string) (map[string][]byte, error) {
	var data map[string][]byte
	for i := range connections {
		c := &connections[i]
		members := buildStorageEntry(c, bundle)
		if members == nil {
			continue
		}
		text, err := json.Marshal(members)
		if err != nil {
			return nil, fmt.Errorf("encoding the storage entry of data connection %s: %w", c.Name, err)
		}
		if data == nil {
			data = map[string][]byte{}
		}
		data[c.Name] = text
	}
	return data, nil
}

// entry is the storage entry of one data connection; nil for one that says nothing of S3, which no puller could use.
func buildStorageEntry(c *corev1.Secret, bundle string) map[string]string {
	members := map[string]string{}
	for _, f := range connectionFields {
		value, known := c.Data[f.key]
		if !known {
			continue
		}
		for _, m := range f.members {
			members[m] = string(value)
		}
	}
	kind := c.Annotations[AnnotationConnection]
	if len(members) == 0 && kind != typeS3 {
		return nil
	}
	if kind == "" {
		kind = typeS3
	}
	members[keyType] = kind
	if bundle != "" && strings.HasPrefix(strings.ToLower(members[keyEndpoint]), "https://") {
		members["certificate"], members["cabundle_configmap"] = bundle, kserveBundleConfigMap
	}
	return members
}
