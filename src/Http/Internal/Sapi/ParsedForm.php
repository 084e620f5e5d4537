<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Form\HeaderValue;
use Spindle\Http\Internal\Form\Refusal;
use Spindle\Http\Internal\Message\Head;

/**
 * A multipart form as PHP has parsed it. Where PHP is known to have left something out, the form is refused.
 *
 * PHP does not tell a malformed form, in which it has found nothing, from one whose parts all have an empty name. Both are refused.
 */
final class ParsedForm
{
    /** PHP's warnings when it stops at one of its limits. */
    private const TOO_MUCH = '/(?:file uploads has been|body parts limit|Input variables|nesting level) exceeded/';

    /** Its warning when it stops at a part without a name. */
    private const GARBLED = 'File Upload Mime headers garbled';

    private function __construct() {}

    /**
     * @param array<mixed> $fields  as $_POST is
     * @param array<mixed> $files   as $_FILES is
     * @param string       $warning that PHP gave last
     *
     * @throws HttpException 400 when it is malformed, 413 when it is more than PHP takes
     */
    public static function of(array $fields, array $files, Head $head, string $warning): Form
    {
        if (preg_match(self::TOO_MUCH, $warning) === 1) {
            throw Refusal::tooMuch('The form has more parts than are taken');
        }
        if (str_contains($warning, self::GARBLED) || $fields === [] && $files === [] && !self::isEmpty($head)) {
            throw Refusal::malformed('The form is malformed');
        }

        return new Form($fields, UploadedFiles::of($files));
    }

    /** Whether the body has room for nothing but the last boundary, with or without the end of its line. */
    private static function isEmpty(Head $head): bool
    {
        $boundary = HeaderValue::parse($head->field('Content-Type'))?->parameters['boundary'] ?? '';

        return $boundary !== '' && \in_array($head->length, [\strlen("--{$boundary}--"), \strlen("--{$boundary}--\r\n")], true);
    }
}
