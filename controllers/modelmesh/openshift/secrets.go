package openshift

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

const certificateAuthority = "odh-platform-operator-modelmesh-ca"

// collectStorage sets StorageData if a data connection, the CA bundle or the storage Secret changed. If none changed, if the Secret is
// foreign, or if the entries are too large, it returns the key of an existing storage Secret, which is then kept. Without data connections
// it does neither, and a managed storage Secret is deleted.
func (r *namespaceReconciler) collectStorage(ctx context.Context, in *Inputs, state *namespaceState) ([]apply.Key, error) {
	metadata, err := r.listConnections(ctx, in)
	if err != nil || len(metadata) == 0 {
		return nil, err
	}
	bundle, err := r.getMetadata(ctx, apply.NewKey(configMapKind, in.Namespace, BundleConfigMap))
	if err != nil {
		return nil, err
	}
	target := apply.NewKey(secretKind, in.Namespace, in.Settings.StorageSecretName)
	existing, err := r.getMetadata(ctx, target)
	if err != nil {
		return nil, err
	}
	kept := []apply.Key{target}
	if existing == nil {
		kept = nil // there is no Secret to keep
	}
	versions := joinVersions(append(metadata, bundle, existing))
	if versions == state.storageVersions {
		return kept, nil
	}
	if foreign, err := r.isStorageSecretForeign(ctx, existing, state); err != nil || foreign {
		state.storageVersions = versions
		return kept, err
	}
	if in.StorageData, err = r.readStorageData(ctx, in.Namespace, metadata, bundle != nil); err != nil {
		return nil, err
	}
	state.storageVersions = versions
	if r.isStorageTooLarge(in, cmp.Or(existing, metadata[0]), state) {
		in.StorageData = nil
		return kept, nil
	}
	if existing == nil && in.StorageData != nil {
		state.storageVersions = "" // the next reconcile reads the created Secret
	}
	return nil, nil
}

// isStorageTooLarge reports whether no Secret can hold the storage entries. It records an Event about the given Secret if so.
func (r *namespaceReconciler) isStorageTooLarge(in *Inputs, secret *metav1.PartialObjectMetadata, state *namespaceState) bool {
	size := 0
	for _, entry := range in.StorageData {
		size += len(entry)
	}
	if size <= corev1.MaxSecretSize {
		return false
	}
	message := fmt.Sprintf("the entries of %d data connections have %d bytes, and Secret %s can have %d, so it does not change. Each https connection has a copy of the CAs: "+
		"remove data connections, or certificates from key %s of ConfigMap %s", len(in.StorageData), size, in.Settings.StorageSecretName, corev1.MaxSecretSize, BundleKey, BundleConfigMap)
	if state.lastProblems.Replace("storage", message) {
		secret = secret.DeepCopy()
		secret.SetGroupVersionKind(secretKind)
		r.recordWarning(secret, message)
	}
	return true
}

// isStorageSecretForeign reports whether the storage Secret belongs to a user. It records an Event for such a Secret.
func (r *namespaceReconciler) isStorageSecretForeign(ctx context.Context, existing *metav1.PartialObjectMetadata, state *namespaceState) (bool, error) {
	if existing == nil || isManaged(existing) {
		state.lastProblems.Replace("storage", "")
		return false, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(secretKind)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(existing), live)
	if apierrors.IsNotFound(err) || err == nil && (isManaged(live) || isStorageSecret(live)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", existing.Name, err)
	}
	message := fmt.Sprintf("the data connections of namespace %s are not added to Secret %s, which another client created: add them there, "+
		"or label it %s=%s to let the operator manage it", existing.Namespace, existing.Name, LabelManaged, valueTrue)
	if state.lastProblems.Replace("storage", message) {
		r.recordWarning(existing, message)
	}
	return true, nil
}

// releaseStorageSecret removes the entries and the labels of this operator from a storage Secret with entries of others, such as one that
// a user wrote and labelled. It returns false if there are no such entries and the caller must delete the Secret.
func (r *namespaceReconciler) releaseStorageSecret(ctx context.Context, o *metav1.PartialObjectMetadata) (released bool, _ error) {
	live := &corev1.Secret{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("reading Secret %s: %w", o.Name, err)
	}
	others := maps.Clone(live.Data)
	for _, e := range live.ManagedFields {
		var fields struct {
			Data map[string]any `json:"f:data"`
		}
		isOwn := e.Manager == r.applier.FieldOwner && e.Operation == metav1.ManagedFieldsOperationApply && e.FieldsV1 != nil
		if !isOwn || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for field := range fields.Data {
			delete(others, strings.TrimPrefix(field, "f:"))
		}
	}
	if len(others) == 0 {
		return false, nil
	}
	return true, r.applier.PatchExisting(ctx, live, func() {
		live.Data = others
		for label := range names.Labels(modelmesh.ComponentName) {
			delete(live.Labels, label)
		}
	})
}

// listConnections returns the metadata of the data connections, sorted by name, except one with the name of the storage Secret.
func (r *namespaceReconciler) listConnections(ctx context.Context, in *Inputs) ([]*metav1.PartialObjectMetadata, error) {
	all, err := modelmesh.ListMetadata(ctx, r.connections, secretKind, client.InNamespace(in.Namespace))
	var metadata []*metav1.PartialObjectMetadata
	for i := range all {
		if all[i].Name != in.Settings.StorageSecretName {
			metadata = append(metadata, &all[i])
		}
	}
	slices.SortFunc(metadata, func(a, b *metav1.PartialObjectMetadata) int { return cmp.Compare(a.Name, b.Name) })
	return metadata, err
}

// readStorageData reads the data connections from the API server and builds the storage entries. It omits deleted connections: their event
// triggers another reconcile.
func (r *namespaceReconciler) readStorageData(ctx context.Context, namespace string, metadata []*metav1.PartialObjectMetadata, withBundle bool) (map[string][]byte, error) {
	var bundle corev1.ConfigMap
	if withBundle {
		err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: BundleConfigMap}, &bundle)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the CAs of the platform: %w", err)
		}
	}
	var connections []corev1.Secret
	for _, m := range metadata {
		var c corev1.Secret
		err := r.live.Get(ctx, client.ObjectKeyFromObject(m), &c)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading data connection %s: %w", m.Name, err)
		}
		connections = append(connections, c)
	}
	return buildStorageData(connections, bundle.Data[BundleKey]), nil
}

// joinVersions returns a string that changes with the version of any of the objects; nil objects are skipped.
func joinVersions(metadata []*metav1.PartialObjectMetadata) string {
	var b strings.Builder
	for _, m := range metadata {
		if m != nil {
			fmt.Fprintf(&b, "%s/%s/%s;", m.Name, m.UID, m.ResourceVersion)
		}
	}
	return b.String()
}

// certificates returns the certificate that the operator issues for the sidecar, if any.
func (in *Inputs) certificates() []servingcert.Spec {
	if !in.InUse || in.Proxy == nil || !in.Proxy.NeedsCertificate() {
		return nil
	}
	return []servingcert.Spec{{
		Namespace: in.Namespace, Name: authproxy.TLSSecret, CACommonName: certificateAuthority, Service: in.Settings.ServiceName, Ownership: apply.Unowned,
	}}
}

// ensureCertificate issues and renews the certificate of the sidecar, and sets the CAs for Gateways. It does not change a Secret
// of another client.
func (r *namespaceReconciler) ensureCertificate(ctx context.Context, namespace client.Object, in *Inputs) error {
	err := r.certificates.EnsureSecrets(ctx, namespace, in.certificates()...)
	if served := r.Served(); served.Has(capability.BackendTLSPolicy) && r.exposure.routeKind(served) == capability.HTTPRoute {
		in.CABundle = r.certificates.CABundle(namespace.GetUID(), authproxy.TLSSecret)
	}
	return err
}

// connectionFields maps the keys of a data connection to the fields of a storage entry.
var connectionFields = []struct {
	key    string
	fields []string
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

// buildStorageData returns the storage entries by the names of the data connections; nil for none. The bundle contains the platform CAs.
func buildStorageData(connections []corev1.Secret, bundle string) map[string][]byte {
	data := map[string][]byte{}
	for i := range connections {
		if fields := buildStorageEntry(&connections[i], bundle); fields != nil {
			data[connections[i].Name], _ = json.Marshal(fields) // encoding strings cannot fail
		}
	}
	if len(data) == 0 {
		return nil
	}
	return data
}

// buildStorageEntry returns the storage entry of a data connection, or nil if the connection has neither a field for S3 nor type s3.
func buildStorageEntry(c *corev1.Secret, bundle string) map[string]string {
	fields := map[string]string{}
	for _, f := range connectionFields {
		value, found := c.Data[f.key]
		if !found {
			continue
		}
		for _, name := range f.fields {
			fields[name] = string(value)
		}
	}
	kind := c.Annotations[AnnotationConnection]
	if len(fields) == 0 && kind != typeS3 {
		return nil
	}
	if kind == "" {
		kind = typeS3
	}
	fields[keyType] = kind
	if bundle != "" && strings.HasPrefix(strings.ToLower(fields[keyEndpoint]), "https://") {
		fields["certificate"], fields["cabundle_configmap"] = bundle, kserveBundleConfigMap
	}
	return fields
}
