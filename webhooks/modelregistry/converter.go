package modelregistry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

const (
	// largestConversion bounds the body of a conversion review, in bytes. A list is converted as one.
	maxConversionBytes = 64 << 20
	// objectDepth is how deep the objects of a conversion review are: in a list in the request.
	objectDepth = 3
)

// converter answers conversion reviews, one object after the other: a list never exists decoded.
type converter struct{}

// Largest implements admission.Weighed.
func (converter) Largest() int64 { return maxConversionBytes }

// Weigh implements admission.Weighed.
func (converter) Weigh(body []byte) int64 { return author.MemoryOfItems(body, objectDepth) }

// part is a value of a body that is not decoded yet. Unlike json.RawMessage it is no copy.
type rawValue []byte

// UnmarshalJSON implements json.Unmarshaler.
func (p *rawValue) UnmarshalJSON(value []byte) error {
	*p = value
	return nil
}

// conversionReview is what the API server sends.
type conversionReview struct {
	APIVersion rawValue `json:"apiVersion"`
	Request    *struct {
		UID               rawValue `json:"uid"`
		DesiredAPIVersion rawValue `json:"desiredAPIVersion"`
		Objects           rawValue `json:"objects"`
	} `json:"request"`
}

// ServeHTTP implements http.Handler. What is no review is answered with status 400; an object that cannot be converted
// fails its review.
func (converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := author.Body(r)
	var review conversionReview
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err == nil && review.Request == nil {
		err = errors.New("it has no request")
	}
	var wanted string
	if err == nil && len(review.Request.DesiredAPIVersion) > 0 {
		err = json.Unmarshal(review.Request.DesiredAPIVersion, &wanted)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("no conversion review: %v", err), http.StatusBadRequest)
		return
	}
	// Twice, because nothing is answered by halves, and the whole answer is not held.
	result := metav1.Status{Status: metav1.StatusSuccess}
	objects := review.Request.Objects
	if err := convertAll(io.Discard, objects, wanted); err != nil {
		result, objects = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}, nil
	}
	text, _ := json.Marshal(result) // of strings
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"ConversionReview","apiVersion":%s,"response":{"uid":%s,"result":%s,"convertedObjects":[`,
		review.APIVersion.or("apiextensions.k8s.io/v1"), review.Request.UID.or(""), text)
	_ = convertAll(w, objects, wanted) // the client is gone
	_, _ = io.WriteString(w, "]}}")
}

// or returns the part, or a text where there is none.
func (p rawValue) or(text string) string {
	if p == nil {
		return strconv.Quote(text)
	}
	return string(p)
}

// convertAll writes the items of a list in the wanted version. It returns an error for the first that has none.
func convertAll(w io.Writer, list rawValue, wanted string) error {
	items := json.NewDecoder(bytes.NewReader(list))
	if begin, err := items.Token(); err != nil || begin != json.Delim('[') {
		return nil // nothing to convert
	}
	for i := 0; items.More(); i++ {
		var item rawValue
		if err := items.Decode(&item); err != nil {
			return fmt.Errorf("objects[%d]: %w", i, err)
		}
		converted, err := convertRaw(item, wanted)
		if err != nil {
			return fmt.Errorf("objects[%d]: %w", i, err)
		}
		_, _ = io.WriteString(w, ","[:min(i, 1)])
		if _, err := w.Write(converted); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return nil
}

func convertRaw(raw []byte, wanted string) ([]byte, error) {
	var object map[string]any
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding it: %w", err)
	}
	converted, err := conversion.Convert(object, wanted)
	if err != nil {
		return nil, err
	}
	return encode(converted)
}

// encode writes an object as JSON, without an escape of six bytes for each <, > and &.
func encode(object map[string]any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(object)
	return text.Bytes(), err
}
