package modelregistry

import (
	"cmp"
	"fmt"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

func referencesOf(_ pkgadmission.Rules, raw []byte, namespace string) (pkgadmission.References, error) {
	object, err := decodeRaw(raw)
	if err != nil {
		return pkgadmission.References{}, err
	}
	registry, err := decodeTyped(object)
	if err != nil {
		return pkgadmission.References{}, err
	}
	registry.Namespace = namespace
	return References(registry), nil
}

// References returns the references in the spec of a registry, except those to Secrets that the operator creates.
func References(registry *v1beta1.ModelRegistry) pkgadmission.References {
	spec, path := &registry.Spec, field.NewPath("spec")
	refs := pkgadmission.References{Namespace: registry.Namespace}
	refs.AddReferences(spec, path)
	refs.Remove(pkgadmission.Secret, registry.Name+"-postgres-credentials", registry.Name+"-kube-rbac-proxy") // created by the operator
	refs.AddServer(&spec.CommonPods, path)
	refs.Add(pkgadmission.Image, spec.Rest.Image, path.Child("rest", "image"))
	if p := spec.Postgres; p != nil {
		refs.Add(pkgadmission.Image, p.Image, path.Child("postgres", "image"))
		refs.AddEgressURL(ptr.Deref(p.PasswordSecret, v1beta1.SecretKeyValue{}).Name, cmp.Or(p.Host, p.HostAddress), p.Port, path.Child("postgres", "host"))
	}
	if m := spec.MySQL; m != nil {
		refs.AddEgressURL(ptr.Deref(m.PasswordSecret, v1beta1.SecretKeyValue{}).Name, m.Host, m.Port, path.Child("mysql", "host"))
	}
	for name, proxy := range map[string]*v1beta1.ProxyConfig{"oauthProxy": spec.OAuthProxy, "kubeRBACProxy": spec.KubeRBACProxy} {
		if proxy != nil {
			refs.Add(pkgadmission.Image, proxy.Image, path.Child(name, "image"))
			refs.Add(pkgadmission.Host, proxy.Domain, path.Child(name, "domain"))
		}
	}
	return refs
}

func catalogReferencesOf(_ pkgadmission.Rules, raw []byte, namespace string) (pkgadmission.References, error) {
	c := &aihubv1alpha1.Catalog{}
	if err := kjson.Unmarshal(raw, c); err != nil {
		return pkgadmission.References{}, fmt.Errorf("decoding the Catalog: %w", err)
	}
	c.Namespace = namespace
	return CatalogReferences(c), nil
}

// CatalogReferences returns the references in the spec of a Catalog.
func CatalogReferences(c *aihubv1alpha1.Catalog) pkgadmission.References {
	refs := pkgadmission.References{Namespace: c.Namespace}
	path := field.NewPath("spec")
	refs.AddReferences(c.Spec, path)
	refs.AddServer(&c.Spec.CommonPods, path)
	if d := c.Spec.Database; d != nil && d.External != nil {
		refs.AddEgressURL(d.External.SecretName, d.External.Host, d.External.Port, path.Child("database", "external", "host"))
	}
	return refs
}
