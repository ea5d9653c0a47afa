package kind

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

const (
	databaseSecret = "postgres-credentials"
	uriSecret      = "mlflow-db-credentials"
	storeSecret    = "aws-credentials"
	weedSecret     = "seaweedfs-s3"

	databaseService = "postgres-service"
	databaseTLS     = "postgres-tls"
	storeService    = "minio-service"
	storeTLS        = "seaweedfs-tls"

	accessKey = "AWS_ACCESS_KEY_ID"
	secretKey = "AWS_SECRET_ACCESS_KEY"

	certificateLifetime = 365 * 24 * time.Hour
)

// Known returns the data of a Secret in the cluster, nil if it does not exist.
type Known func(name string) (map[string][]byte, error)

// generator collects the generated objects of a cluster. It keeps existing values, because a database keeps its first password.
type generator struct {
	options Options
	known   Known
	now     time.Time
	objects []client.Object
	bundle  bytes.Buffer
}

// Generate returns the Secrets that the rendered manifests reference, and the ConfigMap with the CAs.
func Generate(o Options, known Known, now time.Time) ([]client.Object, error) {
	g := &generator{options: o, known: known, now: now}
	if o.needsDatabase() {
		if err := g.addDatabase(); err != nil {
			return nil, err
		}
	}
	if o.needsS3() {
		if err := g.addObjectStore(); err != nil {
			return nil, err
		}
	}
	err := g.addCABundle()
	return g.objects, err
}

func (g *generator) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: g.options.Namespace, Name: name}
}

func (g *generator) add(name string, secretType corev1.SecretType, data map[string][]byte) {
	g.objects = append(g.objects, &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: g.meta(name), Type: secretType, Data: data,
	})
}

// addSecret adds a Secret and returns its data: existing values, otherwise the given values, and random values in place of empty ones.
func (g *generator) addSecret(name string, values map[string]string) (map[string][]byte, error) {
	known, err := g.known(name)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for key, value := range values {
		switch {
		case len(known[key]) > 0:
			data[key] = known[key]
		case value != "":
			data[key] = []byte(value)
		default:
			data[key] = []byte(rand.Text())
		}
	}
	g.add(name, corev1.SecretTypeOpaque, data)
	return data, nil
}

func (g *generator) addDatabase() error {
	data, err := g.addSecret(databaseSecret, map[string]string{
		"POSTGRESQL_USER": "mlflow", "POSTGRESQL_DATABASE": "mydatabase", "POSTGRESQL_PASSWORD": "",
	})
	if err != nil {
		return err
	}
	uri := url.URL{
		Scheme: "postgresql", User: url.UserPassword(string(data["POSTGRESQL_USER"]), string(data["POSTGRESQL_PASSWORD"])),
		Host: databaseService + ":5432", Path: "/" + string(data["POSTGRESQL_DATABASE"]),
	}
	if g.options.PostgresTLS {
		uri.RawQuery = "sslmode=verify-full" // the operator adds the file with the CAs
		if err := g.addCertificate(databaseTLS, databaseService); err != nil {
			return err
		}
	}
	text := []byte(uri.String())
	g.add(uriSecret, corev1.SecretTypeOpaque, map[string][]byte{"backend-store-uri": text, "registry-store-uri": text})
	return nil
}

// identities is the configuration of SeaweedFS.
type identities struct {
	Identities []identity `json:"identities"`
}

type identity struct {
	Name        string       `json:"name"`
	Credentials []credential `json:"credentials"`
	Actions     []string     `json:"actions"`
}

type credential struct {
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
}

func (g *generator) addObjectStore() error {
	data, err := g.addSecret(storeSecret, map[string]string{accessKey: "", secretKey: ""})
	if err != nil {
		return err
	}
	text, err := json.Marshal(identities{[]identity{{
		Name: "mlflow", Actions: []string{"Admin", "Read", "Write", "List", "Tagging"},
		Credentials: []credential{{AccessKey: string(data[accessKey]), SecretKey: string(data[secretKey])}},
	}}})
	if err != nil {
		return fmt.Errorf("encoding the configuration of SeaweedFS: %w", err)
	}
	g.add(weedSecret, corev1.SecretTypeOpaque, map[string][]byte{"s3.json": text})
	if !g.options.SeaweedFSTLS {
		return nil
	}
	return g.addCertificate(storeTLS, storeService)
}

// addCertificate adds a Secret with a certificate for a Service, existing or generated, and adds its CA to the bundle.
func (g *generator) addCertificate(name, service string) error {
	known, err := g.known(name)
	if err != nil {
		return err
	}
	host := service + "." + g.options.Namespace
	serving, err := certs.EnsureServing(known, certs.ServingOptions{
		CACommonName: name, Lifetime: certificateLifetime, DNSNames: []string{service, host, host + ".svc", host + ".svc.cluster.local", "localhost"},
	}, g.now)
	if err != nil {
		return fmt.Errorf("generating the certificate of %s: %w", service, err)
	}
	g.add(name, corev1.SecretTypeTLS, serving.Data)
	g.bundle.Write(serving.Data["ca.crt"])
	return nil
}

func (g *generator) addCABundle() error {
	if !g.options.needsCABundle() {
		return nil
	}
	data := map[string]string{}
	if g.bundle.Len() > 0 {
		data["generated.crt"] = g.bundle.String()
	}
	if path := g.options.CABundlePath; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading CA_BUNDLE_PATH: %w", err)
		}
		data["given.crt"] = string(text)
	}
	g.objects = append(g.objects, &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: g.meta(bundleName), Data: data,
	})
	return nil
}
