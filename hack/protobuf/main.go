// Command protobuf makes objects of built-in kinds, and writes each as Go clients send
// it: in protobuf and in JSON.
//
// It reads objects, one line of JSON each, and writes for each a line that has the body
// in base64 and the object. One that says only its kind comes back once for each way to
// fill the Go type.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type body struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Filling    string          `json:"filling"`
	Protobuf   []byte          `json:"protobuf"`
	Object     json.RawMessage `json:"object"`
}

func main() {
	log.SetFlags(0)
	check(apiextensions.AddToScheme(scheme.Scheme))
	check(apiregistration.AddToScheme(scheme.Scheme))
	output := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var sample unstructured.Unstructured
		check(json.Unmarshal(lines.Bytes(), &sample.Object))
		fillings := []filling{zero, hollow, full, edges}
		if len(sample.Object) > 2 {
			fillings = []filling{given}
		}
		for _, filling := range fillings {
			check(output.Encode(write(sample.GroupVersionKind(), lines.Bytes(), filling)))
		}
	}
	check(lines.Err())
}

func write(known schema.GroupVersionKind, text []byte, filling filling) body {
	object, err := scheme.Scheme.New(known)
	check(err)
	check(json.Unmarshal(text, object))
	fill(object, filling)
	object.GetObjectKind().SetGroupVersionKind(known)
	var encoded bytes.Buffer
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	check(serializer.Encode(object, &encoded))
	// What Go itself reads in it: protobuf cannot tell, say, an empty list from none.
	read, _, err := serializer.Decode(encoded.Bytes(), nil, nil)
	check(err)
	read.GetObjectKind().SetGroupVersionKind(known)
	text, err = json.Marshal(read)
	check(err)
	return body{known.GroupVersion().String(), known.Kind, string(filling), encoded.Bytes(), text}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
