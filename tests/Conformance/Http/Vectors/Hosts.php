<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** RFC 9112, 3.2, and RFC 9110, 7.2. */
final class Hosts
{
    /** @return iterable<string, Vector> */
    public static function vectors(): iterable
    {
        yield 'a name with a port is a host' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: www.example.com:8080\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an address of IPv4 is a host' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an address of IPv6 in brackets is a host' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a name with an underscore is a host' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: my_service\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a colon without a port is accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: a:\r\n\r\n",
            'GET / "" kept',
        );
        yield 'a Host that is empty is a Host' => Vector::accepted("GET / HTTP/1.1\r\nHost:\r\n\r\n", 'GET / "" kept');
        yield 'an encoded byte in a host is accepted' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: %41\r\n\r\n",
            'GET / "" kept',
        );
        yield 'the case of Host does not matter' => Vector::accepted(
            "GET / HTTP/1.1\r\nhOST: a\r\n\r\n",
            'GET / "" kept',
        );
        yield 'blanks around a host are none of it' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: \t a \t\r\n\r\n",
            'GET / "" kept',
        );
        yield 'Host may be the last of the fields' => Vector::accepted(
            "GET / HTTP/1.1\r\nAccept: */*\r\nHost: a\r\n\r\n",
            'GET / "" kept',
        );
        yield 'HTTP/1.0 may have a Host' => Vector::accepted("GET / HTTP/1.0\r\nHost: a\r\n\r\n", 'GET / "" closed');
        yield 'the host of an absolute target may differ from Host' => Vector::accepted(
            "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
            'GET http://b/ "" kept',
        );
        yield 'no Host is refused' => Vector::refused(400, "GET / HTTP/1.1\r\n\r\n");
        yield 'no Host among other fields is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nX-Host: a\r\nAccept: */*\r\n\r\n",
        );
        yield 'no Host beside an absolute target is refused' => Vector::refused(
            400,
            "GET http://a/ HTTP/1.1\r\nAccept: */*\r\n\r\n",
        );
        yield 'two Hosts are refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
        yield 'two equal Hosts are refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n");
        yield 'two Hosts of which one is empty are refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n",
        );
        yield 'two Hosts in different letters are refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nhost: a\r\n\r\n",
        );
        yield 'two Hosts in HTTP/1.0 are refused' => Vector::refused(
            400,
            "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        );
        yield 'a list of hosts is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n");
        yield 'a host with a blank is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
        yield 'a host with a path is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n");
        yield 'a host with a query is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a?b\r\n\r\n");
        yield 'a host with a fragment is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a#b\r\n\r\n");
        yield 'a host with a backslash is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n");
        yield 'a host with a name before it is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: b@a\r\n\r\n");
        yield 'a host with a scheme is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: http://a\r\n\r\n");
        yield 'a port without a host is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: :80\r\n\r\n");
        yield 'a port that is no number is refused in a Host' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
        );
        yield 'a port with a sign is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a:-80\r\n\r\n");
        yield 'a port of six digits is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a:100000\r\n\r\n");
        yield 'two ports are refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n");
        yield 'an address of IPv6 without brackets is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n",
        );
        yield 'a bracket that is not closed is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n");
        yield 'a bracket that was not opened is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: ::1]\r\n\r\n",
        );
        yield 'a name in brackets is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: [example]\r\n\r\n");
        yield 'an address of IPv4 within one of IPv6 is a host' => Vector::accepted(
            "GET / HTTP/1.1\r\nHost: [::ffff:192.0.2.1]\r\n\r\n",
            'GET / "" kept',
        );
        yield 'an address of IPv6 of three groups is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [1:2:3]\r\n\r\n",
        );
        yield 'an address of IPv6 of nine groups is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8:9]:80\r\n\r\n",
        );
        yield 'an address of IPv6 with a group of five digits is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [::12345]\r\n\r\n",
        );
        yield 'an address of IPv6 that is shortened twice is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n",
        );
        yield 'an address of IPv6 of colons is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [:::]\r\n\r\n",
        );
        yield 'an address of IPv4 in brackets is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [192.0.2.1]\r\n\r\n",
        );
        yield 'an address of IPv6 with a wrong address of IPv4 is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [::192.0.2.256]\r\n\r\n",
        );
        yield 'an address of IPv6 with a zone is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n",
        );
        yield 'an address of a future version is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [v1.a]\r\n\r\n",
        );
        yield 'a name after brackets is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: [::1].example\r\n\r\n",
        );
        yield 'half of an encoded byte in a host is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: a%4\r\n\r\n",
        );
        yield 'letters beyond ASCII in a host are refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost: \u{E9}.example\r\n\r\n",
        );
        yield 'a quoted host is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: \"a\"\r\n\r\n");
        yield 'markup in a host is refused' => Vector::refused(400, "GET / HTTP/1.1\r\nHost: a<script>\r\n\r\n");
        yield 'a blank before the colon of Host is refused' => Vector::refused(
            400,
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        );
    }
}
