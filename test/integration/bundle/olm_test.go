package bundle_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// ownerLabel is on everything of OLM that no owner reference can hold together.
const ownerLabel = "olm.owner"

// olm is what this suite does in the place of OLM.
type olm struct {
	csv *v1alpha1.ClusterServiceVersion
	// manifests are the objects of the bundle beside the CSV.
	manifests []*unstructured.Unstructured
	// made is everything that goes with the CSV.
	made []client.Object
	// ca of the certificate, which is mounted below root as it is in the pods.
	ca   []byte
	root string
	// port of the webhook server on this machine.
	port int32
}

// newOLM reads the bundle.
func newOLM(port int) *olm {
	o := &olm{csv: &v1alpha1.ClusterServiceVersion{}, port: int32(port), root: GinkgoT().TempDir()}
	paths, err := filepath.Glob("../../../bundle/manifests/*.yaml")
	Expect(err).NotTo(HaveOccurred())
	for _, path := range paths {
		content, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(content, &object.Object)).To(Succeed(), path)
		if object.GetKind() == "ClusterServiceVersion" {
			Expect(yaml.UnmarshalStrict(content, o.csv)).To(Succeed())
			continue
		}
		o.manifests = append(o.manifests, object)
	}
	return o
}

// install does what OLM does for a CSV, in its order: CRDs, the other manifests, accounts with their rights, the certificate, the
// Deployment and what calls it.
func (o *olm) install(ctx context.Context) {
	GinkgoHelper()
	o.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	o.made = nil // the namespace is not OLM's
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, m := range o.manifests {
		if m.GetKind() == "CustomResourceDefinition" {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, crd)).To(Succeed())
			crds = append(crds, crd)
		}
	}
	Expect(cluster.InstallCRDs(ctx, env.Config, crds...)).To(Succeed())
	// Secrets of accounts want their accounts first. OLM has it the other way round, and may lose the Secret: see docs/olm.md.
	o.grant(ctx)
	o.others(ctx)
	o.certify(ctx)
	o.deploy(ctx)
	o.call(ctx)
}

// others creates the manifests beside CRDs, in the namespace of the operator where they have one. OLM fails at one whose kind is not
// served.
func (o *olm) others(ctx context.Context) {
	GinkgoHelper()
	for _, m := range o.manifests {
		if m.GetKind() == "CustomResourceDefinition" {
			continue
		}
		object := m.DeepCopy()
		mapping, err := env.Admin.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		Expect(err).NotTo(HaveOccurred(), "OLM would fail at %s %s", object.GetKind(), object.GetName())
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			object.SetNamespace(namespace)
		}
		o.create(ctx, object)
	}
}

// grant makes the accounts of the CSV, and a role with its binding for each entry of its permissions.
func (o *olm) grant(ctx context.Context) {
	GinkgoHelper()
	strategy := o.csv.Spec.InstallStrategy.StrategySpec
	accounts := map[string]bool{}
	for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		accounts[p.ServiceAccountName] = true
	}
	for name := range accounts {
		o.create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	for _, p := range strategy.Permissions {
		r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: o.csv.Name + "-"}, Rules: p.Rules}
		o.create(ctx, r)
		o.create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.Name}, Subjects: subjects(p.ServiceAccountName),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: r.Name},
		})
	}
	for _, p := range strategy.ClusterPermissions {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: o.csv.Name + "-"}, Rules: p.Rules}
		o.create(ctx, r)
		o.create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Subjects: subjects(p.ServiceAccountName),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
		})
	}
}

func subjects(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
}

// service is the name of the Service that OLM puts before the webhooks.
func (o *olm) service() string { return o.csv.Spec.WebhookDefinitions[0].DomainName() + "-service" }

// certify issues a certificate for the Service, stores it where OLM does, and lays it where the volumes of OLM mount it.
func (o *olm) certify(ctx context.Context) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "olm-selfsigned"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: o.service()}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{o.service() + "." + namespace, o.service() + "." + namespace + ".svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	serving, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalECPrivateKey(leafKey)
	Expect(err).NotTo(HaveOccurred())
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	o.ca = block("CERTIFICATE", signed)
	data := map[string][]byte{"tls.crt": block("CERTIFICATE", serving), "tls.key": block("EC PRIVATE KEY", private), "olmCAKey": o.ca}
	o.create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.service() + "-cert"}, Type: corev1.SecretTypeTLS, Data: data})
	for folder, names := range map[string][2]string{
		"/tmp/k8s-webhook-server/serving-certs": {"tls.crt", "tls.key"}, "/apiserver.local.config/certificates": {"apiserver.crt", "apiserver.key"},
	} {
		dir := filepath.Join(o.root, folder)
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, names[0]), data["tls.crt"], 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, names[1]), data["tls.key"], 0o600)).To(Succeed())
	}
}

// deploy creates the Deployment of the CSV with what OLM adds: its own variable and the two volumes with the certificate.
func (o *olm) deploy(ctx context.Context) {
	GinkgoHelper()
	d := o.deployment()
	pod := &d.Spec.Template.Spec
	for _, v := range []struct{ name, path, cert, key string }{
		{"apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
		{"webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"},
	} {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: v.name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: o.service() + "-cert", Items: []corev1.KeyToPath{{Key: "tls.crt", Path: v.cert}, {Key: "tls.key", Path: v.key}},
		}}})
		for i := range pod.Containers {
			pod.Containers[i].VolumeMounts = append(pod.Containers[i].VolumeMounts, corev1.VolumeMount{Name: v.name, MountPath: v.path})
		}
	}
	o.create(ctx, d)
}

// deployment is the one of the CSV.
func (o *olm) deployment(subscription ...corev1.EnvVar) *appsv1.Deployment {
	specs := o.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	Expect(specs).To(HaveLen(1))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: specs[0].Name, Labels: specs[0].Label}, Spec: *specs[0].Spec.DeepCopy()}
	extra := append([]corev1.EnvVar{{Name: "OPERATOR_CONDITION_NAME", Value: o.csv.Name}}, subscription...)
	for i := range d.Spec.Template.Spec.Containers {
		container := &d.Spec.Template.Spec.Containers[i]
		for _, e := range extra { // a variable that is there is replaced, as OLM does with those of a Subscription
			container.Env = slices.DeleteFunc(container.Env, func(old corev1.EnvVar) bool { return old.Name == e.Name })
			container.Env = append(container.Env, e)
		}
	}
	return d
}

// call makes the Service, and the webhook configurations and the conversion that lead to it; on loopback by a port of this machine.
func (o *olm) call(ctx context.Context) {
	GinkgoHelper()
	o.create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.service()},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	for _, d := range o.csv.Spec.WebhookDefinitions {
		Expect(d.DeploymentName).To(Equal(o.deployment().Name))
		Expect(d.TargetPort.IntValue()).To(Equal(9443))
		d.ContainerPort = o.port
		name := metav1.ObjectMeta{GenerateName: d.GenerateName + "-", Labels: map[string]string{"olm.webhook-description-generate-name": d.GenerateName}}
		switch d.Type {
		case v1alpha1.MutatingAdmissionWebhook:
			o.create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
				ObjectMeta: name, Webhooks: []admissionregistrationv1.MutatingWebhook{d.GetMutatingWebhook(namespace, nil, o.ca)},
			})
		case v1alpha1.ValidatingAdmissionWebhook:
			o.create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: name, Webhooks: []admissionregistrationv1.ValidatingWebhook{d.GetValidatingWebhook(namespace, nil, o.ca)},
			})
		case v1alpha1.ConversionWebhook:
			o.convert(ctx, d)
		}
	}
}

// convert writes the conversion into CRDs, over what they say.
func (o *olm) convert(ctx context.Context, d v1alpha1.WebhookDescription) {
	GinkgoHelper()
	for _, name := range d.ConversionCRDs {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		env.Get(ctx, crd)
		before := crd.Spec.Conversion.Webhook.ClientConfig.Service
		Expect(before.Name).To(Equal(o.service()), "before OLM comes, versions must not be mixed up, and not be converted by another Service")
		Expect(crd.Spec.PreserveUnknownFields).To(BeFalse())
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: o.ca, Service: &apiextensionsv1.ServiceReference{
					Namespace: namespace, Name: o.service(), Path: d.WebhookPath, Port: &d.ContainerPort,
				}},
				ConversionReviewVersions: d.AdmissionReviewVersions,
			},
		}
		Expect(env.Admin.Update(ctx, crd)).To(Succeed())
	}
}

// create makes an object that goes with the CSV.
func (o *olm) create(ctx context.Context, object client.Object) {
	GinkgoHelper()
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ownerLabel] = o.csv.Name
	object.SetLabels(labels)
	Expect(env.Admin.Create(ctx, object)).To(Succeed(), "%T %s", object, object.GetName())
	o.made = append(o.made, object)
}

// uninstall removes what goes with the CSV, the youngest first. CRDs stay.
func (o *olm) uninstall(ctx context.Context) {
	GinkgoHelper()
	for _, object := range slices.Backward(o.made) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, object))).To(Succeed(), "%T %s", object, object.GetName())
	}
	for _, object := range o.made {
		env.WaitGone(ctx, object)
	}
	o.made = nil
}

// process is how the manager runs beside the control plane: with the arguments and variables of its container. Only addresses of
// listeners are its own, and paths lead to where the volumes are laid.
func (o *olm) process(d *appsv1.Deployment) (args, variables []string) {
	container := d.Spec.Template.Spec.Containers[0]
	for _, argument := range container.Args {
		switch {
		case strings.HasPrefix(argument, "--health-probe-bind-address="), strings.HasPrefix(argument, "--metrics-bind-address="):
		default:
			args = append(args, strings.Replace(argument, "=/tmp/", "="+o.root+"/tmp/", 1))
		}
	}
	for _, e := range container.Env {
		if e.ValueFrom == nil {
			variables = append(variables, e.Name+"="+e.Value)
		}
	}
	return args, append(variables, "TMPDIR="+o.root+"/tmp")
}
