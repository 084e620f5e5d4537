<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Ways in which a server may authenticate the user. The values are those of libpq's require_auth. */
enum AuthenticationMethod: string
{
    /** The server asks for nothing: it trusts the address, the operating system's user or the TLS certificate. */
    case None = 'none';

    /** SCRAM-SHA-256: the password is never sent, and the server has to prove that it knows it. */
    case Scram = 'scram-sha-256';

    /** An MD5 hash: an eavesdropper can try passwords quickly, and the server proves nothing. */
    case Md5 = 'md5';

    /** The password itself is sent. */
    case Password = 'password';
}
