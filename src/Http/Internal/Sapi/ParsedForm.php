<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\BodyErrors;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Form\HeaderValue;
use Spindle\Http\Internal\Message\Head;

/**
 * Converts a multipart form that PHP has parsed. Refuses the form if a warning shows that PHP has left something out.
 *
 * PHP leaves $_POST and $_FILES empty if a form has no parts, if it is malformed, or if all its parts have empty names.
 * So if both are empty, this class also refuses the form, unless the body has the length of a form without parts.
 */
final class ParsedForm
{
    /** PHP's warnings when PHP stops at one of its limits. */
    private const LIMIT_WARNING_PATTERN = '/(?:file uploads has been|body parts limit'
        . '|Input variables|nesting level) exceeded/';

    /** PHP's warning when PHP stops at a part without a name. */
    private const GARBLED_PART_WARNING = 'File Upload Mime headers garbled';

    /**
     * @param array<mixed> $fields  in the format of $_POST
     * @param array<mixed> $files   in the format of $_FILES
     * @param string       $warning PHP's last warning before the script began; '' for none
     *
     * @throws HttpException 400 when the form is malformed, 413 when it exceeds PHP's limits
     */
    public static function of(array $fields, array $files, Head $head, string $warning): Form
    {
        if (preg_match(self::LIMIT_WARNING_PATTERN, $warning) === 1) {
            throw BodyErrors::tooMuch('The form has more parts than PHP allows');
        }
        if (
            str_contains($warning, self::GARBLED_PART_WARNING)
            || $fields === [] && $files === [] && !self::isEmpty($head)
        ) {
            throw BodyErrors::malformed('The form is malformed');
        }

        return new Form($fields, UploadedFiles::of($files));
    }

    /** Returns whether the body has the length of a form without parts: the last boundary, and perhaps a line end. */
    private static function isEmpty(Head $head): bool
    {
        $boundary = HeaderValue::parse($head->field('Content-Type'))?->parameters['boundary'] ?? '';

        return $boundary !== ''
            && \in_array($head->length, [\strlen("--{$boundary}--"), \strlen("--{$boundary}--\r\n")], true);
    }
}
